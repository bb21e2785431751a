#!/usr/bin/env python3
"""Writes its own key into its complaint."""

import os
import sys

from agent import begin

begin()
print(f"error: the gateway refused {os.environ['ANTHROPIC_API_KEY']}", file=sys.stderr)
sys.exit(3)
