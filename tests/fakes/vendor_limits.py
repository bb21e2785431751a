"""Limits per window that the fake endpoint enforces, with the headers of the vendors."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from tests.fakes.replies import Reply, Seen


@dataclass
class EnforcedLimits:
    """Requests and tokens (input and output together) of each window, of all models together or of each one.

    The first request begins the first window. The tokens of an answer count when its request arrives. Refused requests
    do not count.
    """

    requests: int
    tokens: int
    window: float = 60.0
    per_model: bool = False
    sends_headers: bool = True
    started: float = 0.0
    used: dict[tuple[int, str], Counter[str]] = field(default_factory=dict)  # by window and model
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, seen: Seen, reply: Reply, tokens: int) -> Reply:
        """Return the reply with the headers, or a refusal."""
        with self._lock:
            now = time.monotonic()
            self.started = self.started or now
            number = int((now - self.started) / self.window)
            used = self.used.setdefault((number, seen.model if self.per_model else ""), Counter())
            left = self.started + (number + 1) * self.window - now
            is_refused = used["requests"] >= self.requests or used["tokens"] + tokens > self.tokens
            used.update({"refused": 1} if is_refused else {"requests": 1, "tokens": tokens})
            headers = self._make_headers(seen.wire, used, left) if self.sends_headers else {}
        if is_refused:
            return Reply(status=429, headers={**headers, "Retry-After": f"{left:.3f}"})
        return replace(reply, headers={**reply.headers, **headers})

    def _make_headers(self, wire: str, used: Counter[str], left: float) -> dict[str, str]:
        headers: dict[str, str] = {}
        for kind, limit in (("requests", self.requests), ("tokens", self.tokens)):
            values = {"limit": str(limit), "remaining": str(max(0, limit - used[kind]))}
            if wire == "anthropic":
                values["reset"] = (datetime.now(UTC) + timedelta(seconds=left)).isoformat()
                headers |= {f"anthropic-ratelimit-{kind}-{name}": value for name, value in values.items()}
            else:
                values["reset"] = f"{left:.3f}s" if left < 60 else f"{int(left // 60)}m{left % 60:.3f}s"
                headers |= {f"x-ratelimit-{name}-{kind}": value for name, value in values.items()}
        return headers

    def count(self, kind: str) -> list[int]:
        """Return the requests, the tokens or the refused requests of each window."""
        last = max((number for number, _ in self.used), default=-1)
        return [sum(used[kind] for (n, _), used in self.used.items() if n == number) for number in range(last + 1)]
