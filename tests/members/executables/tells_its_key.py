#!/usr/bin/env python3
"""Prints its API key in the error message."""

import os
import sys

from agent import begin

begin()
print(f"error: the gateway refused {os.environ['ANTHROPIC_API_KEY']}", file=sys.stderr)
sys.exit(3)
