#!/usr/bin/env python3
"""Notes each time it is asked what it is."""

import sys

from agent import begin, note, result, say

if {"--help", "--version"} & set(sys.argv):
    note(probe=True)
begin()
say(result("Tabs are better."))
