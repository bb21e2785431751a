#!/usr/bin/env python3
"""Exits with 0 after an error result that names no status."""

from agent import begin, result, say

begin()
say(result("The session ended unexpectedly", is_error=True))
