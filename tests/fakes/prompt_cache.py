"""Prompt caches of the vendors, by their documented rules: what a request reads from the cache and writes to it.

    anthropic   marked blocks (`cache_control`, at most four); a mark reads an entry up to 20 blocks before it
    openai      gpt-5.6 and later: entries end at breakpoints, and writes have a price; without explicit mode there is
                one at the end of the newest message. Earlier models: the longest prefix of an earlier request, in steps
                of 128
    google      the longest prefix of an earlier request, without a promise

A schema stands before the system text at Anthropic and OpenAI. A prefix below the vendor's minimum is not cached, and
an entry can be read when the answer to its request has begun. Four characters are one token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.fakes.replies import Json, Seen

CHARS_PER_TOKEN = 4
LOOKBACK_BLOCKS = 20
MAX_BREAKPOINTS = 4
OPENAI_STEP = 128
MIN_TOKENS = {"anthropic": 1024, "openai": 1024, "google": 4096}


class Block(NamedTuple):
    """A part of a prompt, in the order in which the vendor reads it."""

    text: str
    is_marked: bool = False
    ends_message: bool = False


class CacheUse(NamedTuple):
    """Tokens that one request reads from the cache and writes to it, and the prefixes that are cached afterwards."""

    read: int
    written: int
    entries: tuple[str, ...]


@dataclass(slots=True)
class PromptCache:
    """The cached prefixes of each model."""

    min_tokens: Json = field(default_factory=lambda: dict(MIN_TOKENS))
    entries: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # (wire, model) → prefixes

    def use(self, seen: Seen) -> CacheUse:
        """Return what a request reads and writes. It is cached when `commit` is called, at the start of its answer."""
        vendor = seen.wire.removesuffix("-responses")
        blocks, known = list_blocks(seen), self.entries.get((vendor, seen.model), set())
        least = self.min_tokens[vendor] * CHARS_PER_TOKEN
        if vendor == "anthropic":
            return _use_points(blocks, _marked_ends(blocks), known, least, LOOKBACK_BLOCKS)
        if vendor == "openai" and has_breakpoints(seen.model):
            is_explicit = (seen.body.get("prompt_cache_options") or {}).get("mode") == "explicit"
            return _use_points(blocks, _openai_ends(blocks, is_explicit), known, least, 0)
        return _use_longest(blocks, known, least, OPENAI_STEP if vendor == "openai" else 1)

    def commit(self, seen: Seen, used: CacheUse) -> None:
        key = (seen.wire.removesuffix("-responses"), seen.model)
        self.entries.setdefault(key, set()).update(used.entries)


def has_breakpoints(model: str) -> bool:
    """Return whether a model of OpenAI caches at breakpoints: gpt-5.6 and later."""
    version = re.match(r"gpt-(\d+)(?:\.(\d+))?", model)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 6)


def list_blocks(seen: Seen) -> list[Block]:
    """Return the parts of a request in the order in which its vendor reads them."""
    body, blocks = seen.body, list[Block]()
    if seen.schema is not None and seen.wire != "google":
        blocks.append(Block(json.dumps(seen.schema)))
    if seen.wire == "google":
        system = (body.get("systemInstruction") or {}).get("parts") or []
        turns = [("system", system), *((turn["role"], turn["parts"]) for turn in body.get("contents") or [])]
    elif seen.wire == "anthropic":
        turns = [("system", body.get("system") or []), *((turn["role"], turn["content"]) for turn in body["messages"])]
    else:
        turns = [(turn["role"], turn["content"]) for turn in body.get("messages") or body.get("input") or []]
    for role, content in turns:
        parts: list[Json] = [{"text": content}] if isinstance(content, str) else content
        for n, part in enumerate(parts):
            is_marked = "cache_control" in part or "prompt_cache_breakpoint" in part
            text = part.get("text") or json.dumps({name: part[name] for name in part if name != "cache_control"})
            start = f"\0{role}\0" if n == 0 else ""
            blocks.append(Block(start + text, is_marked, n == len(parts) - 1 and role == "user"))
    return blocks


def measure_prefix(blocks: Sequence[Block], earlier: Sequence[Sequence[Block]]) -> int:
    """Return the tokens that a request has in common with the beginning of an earlier one."""
    text = _join(blocks)
    return max((_common_length(text, _join(other)) for other in earlier), default=0) // CHARS_PER_TOKEN


def _join(blocks: Sequence[Block]) -> str:
    return "".join(block.text for block in blocks)


def _common_length(first: str, second: str) -> int:
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low


def _marked_ends(blocks: Sequence[Block]) -> list[int]:
    marked = [n for n, block in enumerate(blocks) if block.is_marked]
    if len(marked) > MAX_BREAKPOINTS:
        raise ValueError(f"{len(marked)} cache breakpoints: at most {MAX_BREAKPOINTS} are allowed")
    return marked


def _openai_ends(blocks: Sequence[Block], is_explicit: bool) -> list[int]:
    """Return the breakpoints: the explicit ones, and the ends of the user's messages unless the mode is explicit."""
    return [n for n, block in enumerate(blocks) if block.is_marked or (block.ends_message and not is_explicit)]


def _use_points(blocks: Sequence[Block], points: Sequence[int], known: set[str], least: int, lookback: int) -> CacheUse:
    prefixes = [_join(blocks[: n + 1]) for n in range(len(blocks))]
    places = {n for point in points for n in range(max(0, point - lookback), point + 1)}
    read = max((len(prefixes[n]) for n in places if prefixes[n] in known), default=0)
    entries = tuple(prefixes[n] for n in points[-MAX_BREAKPOINTS:] if len(prefixes[n]) >= least)
    end = max(map(len, entries), default=0)
    return CacheUse(read // CHARS_PER_TOKEN, max(0, end - read) // CHARS_PER_TOKEN, entries)


def _use_longest(blocks: Sequence[Block], known: set[str], least: int, step: int) -> CacheUse:
    text = _join(blocks)
    size = step * CHARS_PER_TOKEN
    read = max((_common_length(text, other) for other in known), default=0) // size * size
    return CacheUse(read // CHARS_PER_TOKEN if read >= least else 0, 0, (text,) if len(text) >= least else ())
