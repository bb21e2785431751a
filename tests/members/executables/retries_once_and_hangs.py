#!/usr/bin/env python3
"""Reports a rate limit, and then nothing more."""

import sys
import time

from agent import begin, note, say

begin()
say(
    '{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 429, "error": "rate_limit"}'
)
print("waiting for the rate limit", file=sys.stderr, flush=True)
note(complained=True)
time.sleep(600)
