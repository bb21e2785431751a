#!/usr/bin/env python3
"""Exits with 0 after an error result."""

from agent import begin, result, say

begin()
say(result("API Error: 500 Internal server error", is_error=True))
