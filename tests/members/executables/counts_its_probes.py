#!/usr/bin/env python3
"""Logs each probe."""

import sys

from agent import begin, note, result, say

if {"--help", "--version"} & set(sys.argv):
    note(probe=True)
begin()
say(result("Tabs are better."))
