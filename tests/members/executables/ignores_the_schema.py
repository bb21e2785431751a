#!/usr/bin/env python3
"""Answers in prose whatever form was asked for."""

from agent import begin, result, say

begin()
say(result("I would rather tell you in my own words."))
