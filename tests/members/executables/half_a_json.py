#!/usr/bin/env python3
"""Exits in the middle of its result."""

import sys

from agent import begin, event, result

begin()
sys.stdout.write(event("Not logged in? OAuth says") + "\n" + result("Tabs are better.")[:60])
