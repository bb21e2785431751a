"""A keyring in memory that can be locked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

keyring = pytest.importorskip("keyring", reason="the extra keys is not installed: pip install 'model-council[keys]'")


class Ring(keyring.backend.KeyringBackend):  # type: ignore[misc, name-defined]
    priority = 1

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False

    def _look(self) -> dict[tuple[str, str], str]:
        if self.locked:
            held = ", ".join(self.held.values())
            raise keyring.errors.KeyringLocked(f"locked, and it held {held}")
        return self.held

    def get_password(self, service: str, username: str) -> str | None:
        return self._look().get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._look()[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._look()[service, username]


@contextmanager
def use_ring() -> Iterator[Ring]:
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    try:
        yield ring
    finally:
        keyring.set_keyring(before)
