#!/usr/bin/env python3
"""Asks for confirmation and waits for input that never arrives."""

import signal

from agent import begin, say

begin()
say("Opening the login page in your browser. Continue? [Y/n] ")
signal.pause()
