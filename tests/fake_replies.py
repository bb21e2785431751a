"""Replies of the fake provider, re-exported for older tests."""

from __future__ import annotations

from tests.fakes.dialects import DIALECTS, usage_of
from tests.fakes.replies import Json, Reply, Seen, said_by

__all__ = ["Json", "Reply", "Seen", "said_by", "stream", "usage_of"]

stream = DIALECTS["openai"].stream
