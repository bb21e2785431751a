#!/usr/bin/env python3
"""Starts, hangs, and on SIGTERM finishes its work before it exits."""

import signal
import sys
from typing import Any

from agent import begin, event, note, say


def finish(*_: Any) -> None:
    note(finished=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, finish)
begin()
say(event("Tabs"))
while True:
    signal.pause()
