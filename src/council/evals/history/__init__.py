"""Reviewers measured on the history of a repository: commits that introduced bugs, and controls."""
