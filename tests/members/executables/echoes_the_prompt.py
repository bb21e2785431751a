#!/usr/bin/env python3
"""Says the question again before the answer, or in place of one where it is told to."""

from agent import begin, result, say

prompt = begin()
say(result(prompt if "no answer" in prompt else f"{prompt}\n\nTabs are better."))
