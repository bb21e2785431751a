#!/usr/bin/env python3
"""Always answers in prose."""

from agent import begin, result, say

begin()
say(result("I would rather tell you in my own words."))
