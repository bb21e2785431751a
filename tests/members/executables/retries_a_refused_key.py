#!/usr/bin/env python3
"""Reports that the key was refused, and waits to retry."""

import time

from agent import begin, say

begin()
say(
    '{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 401, "error": "authentication_failed"}'
)
time.sleep(600)
