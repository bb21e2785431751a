"""Evidence: whether a council helps, measured on data sets and recorded answers.

A plain council imports nothing of this package.
"""
