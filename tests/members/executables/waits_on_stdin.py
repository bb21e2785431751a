#!/usr/bin/env python3
"""Asks a person whether to go on, and waits for the answer that never comes."""

import signal

from agent import begin, say

begin()
say("Opening the login page in your browser. Continue? [Y/n] ")
signal.pause()
