"""Thoughts that a model served raw puts before its answer, taken out of the stream as it comes in."""

from __future__ import annotations

from collections.abc import Callable

TAGS = ("<think>", "<thinking>")


class Thinking:
    """Lets the answer through and holds back a leading <think> block, wherever the pieces are cut."""

    def __init__(self) -> None:
        self.held = ""  # what may still turn out to be a tag
        self.end = ""  # what closes the block it is in
        self._take: Callable[[], str] = self._before

    def let(self, piece: str) -> str:
        """As much of the answer as is certain by now."""
        self.held += piece
        return self._take()

    def rest(self) -> str:
        """At the end of the stream: what was held back and is no tag. A thought without end is no answer."""
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
            self.held = self.held[-len(self.end) :]  # no more than could be the start of the end
            return ""
        self.held, self.end, self._take = self.held[at + len(self.end) :], "", self._after
        return self._take()

    def _after(self) -> str:
        self.held = self.held.lstrip()
        if self.held:
            self._take = self._answer
        return self._answer()

    def _answer(self) -> str:
        said, self.held = self.held, ""
        return said
