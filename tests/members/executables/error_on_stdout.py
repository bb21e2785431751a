#!/usr/bin/env python3
"""Prints its error on standard output and nothing on standard error."""

import sys

from agent import begin, say

begin()
say("Error: the disk of this agent is full")
sys.exit(1)
