#!/usr/bin/env python3
"""Streams its answer and exits."""

from agent import begin, event, result, say

begin()
say(
    '{"type": "system", "subtype": "init", "unknown": 1}', event("Tabs "), event("are better."), '{"type": "brand_new"}'
)
say(result("Tabs are better.", modelUsage={"claude-opus-4-6": {}}, something_new=[1]))
