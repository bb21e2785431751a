#!/usr/bin/env python3
"""Ends well with a result that is an error."""

from agent import begin, result, say

begin()
say(result("API Error: 500 Internal server error", is_error=True))
