#!/usr/bin/env python3
"""Hangs, and will not be asked to end."""

import signal

from agent import begin

signal.signal(signal.SIGTERM, signal.SIG_IGN)
begin()
while True:
    signal.pause()
