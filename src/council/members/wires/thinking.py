"""Filter that removes a leading <think> block from a stream."""

from __future__ import annotations

from collections.abc import Callable

TAGS = ("<think>", "<thinking>")


class Thinking:
    """Passes the answer through and drops a leading <think> block, also when a tag is split between pieces."""

    def __init__(self) -> None:
        self.held = ""  # text that may be part of a tag
        self.end = ""  # closing tag of the current block
        self._take: Callable[[], str] = self._before

    def let(self, piece: str) -> str:
        """Add text and return the part that is certainly answer."""
        self.held += piece
        return self._take()

    def rest(self) -> str:
        """Return the buffered text at the end of the stream. An unclosed block is dropped."""
        return "" if self.end else self._answer()

    def _before(self) -> str:
        start = self.held.lstrip()
        tag = next((tag for tag in TAGS if start[: len(tag)].lower() == tag), "")
        if tag:
            self.held, self.end, self._take = start[len(tag) :], f"</{tag[1:]}", self._inside
        elif any(tag.startswith(start.lower()) for tag in TAGS):
            return ""
        else:
            self._take = self._answer
        return self._take()

    def _inside(self) -> str:
        at = self.held.lower().find(self.end)
        if at < 0:
            self.held = self.held[-len(self.end) :]  # keep only what may be the start of the closing tag
            return ""
        self.held, self.end, self._take = self.held[at + len(self.end) :], "", self._after
        return self._take()

    def _after(self) -> str:
        self.held = self.held.lstrip()
        if self.held:
            self._take = self._answer
        return self._answer()

    def _answer(self) -> str:
        text, self.held = self.held, ""
        return text
