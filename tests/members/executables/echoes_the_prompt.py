#!/usr/bin/env python3
"""Repeats the prompt before the answer, or instead of it if configured."""

from agent import begin, result, say

prompt = begin()
say(result(prompt if "no answer" in prompt else f"{prompt}\n\nTabs are better."))
