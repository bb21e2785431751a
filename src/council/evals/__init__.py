"""Evidence: whether a council helps, measured on data sets, recorded answers and simulated members.

A plain council imports nothing of this package.
"""
