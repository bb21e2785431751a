#!/usr/bin/env python3
"""Exits with 0 without output."""

from agent import begin

begin()
