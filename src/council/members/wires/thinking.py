"""Filter that removes a leading <think> block from a stream."""

from __future__ import annotations

from collections.abc import Callable

THINKING_TAGS = ("<think>", "<thinking>")


class ThinkingFilter:
    """Passes the answer through and drops a leading <think> block, also when a tag is split between pieces."""

    def __init__(self) -> None:
        self.buffer = ""  # text that may be part of a tag
        self.end_tag = ""  # closing tag of the current block
        self._state: Callable[[], str] = self._before_thinking

    def feed(self, piece: str) -> str:
        """Add text and return the part that is certainly answer."""
        self.buffer += piece
        return self._state()

    def flush(self) -> str:
        """Return the buffered text at the end of the stream. An unclosed block is dropped."""
        return "" if self.end_tag else self._flush_answer()

    def _before_thinking(self) -> str:
        start = self.buffer.lstrip()
        tag = next((tag for tag in THINKING_TAGS if start[: len(tag)].lower() == tag), "")
        if tag:
            self.buffer, self.end_tag, self._state = start[len(tag) :], f"</{tag[1:]}", self._inside_thinking
        elif any(tag.startswith(start.lower()) for tag in THINKING_TAGS):
            return ""
        else:
            self._state = self._flush_answer
        return self._state()

    def _inside_thinking(self) -> str:
        at = self.buffer.lower().find(self.end_tag)
        if at < 0:
            self.buffer = self.buffer[-len(self.end_tag) :]  # keep only what may be the start of the closing tag
            return ""
        self.buffer, self.end_tag, self._state = self.buffer[at + len(self.end_tag) :], "", self._after_thinking
        return self._state()

    def _after_thinking(self) -> str:
        self.buffer = self.buffer.lstrip()
        if self.buffer:
            self._state = self._flush_answer
        return self._flush_answer()

    def _flush_answer(self) -> str:
        text, self.buffer = self.buffer, ""
        return text
