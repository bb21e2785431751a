#!/usr/bin/env python3
"""Ends well without a word."""

from agent import begin

begin()
