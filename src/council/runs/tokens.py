"""Tokens of users of a server: make, check and revoke them. The store has only a keyed hash of each."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from hmac import compare_digest
from typing import Literal, cast

from council.errors import UsageError
from council.money import nanos_to_usd, usd_to_nanos
from council.runs.run_context import USER_OWNER
from council.settings.schema import quote_value
from council.store.interface import TokenRow
from council.store.run_store import RunStore

Scope = Literal["chat", "runs", "admin"]
SCOPES: dict[Scope, str] = {
    "chat": "ask questions, and read and cancel the own runs",
    "runs": "everything with the own runs",
    "admin": "all runs and the files of the server, like its owner",
}
DEFAULT_SCOPE: Scope = "runs"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
TOKEN = re.compile(r"ct-(?P<id>[0-9a-f]{12})-(?P<secret>[\w-]{43})", re.ASCII)
SECRET_BYTES, ID_BYTES, SALT_BYTES = 32, 6, 16


@dataclass(frozen=True, slots=True)
class User:
    """Sender of a request: a user with a token, or the owner of the server, who has no name."""

    name: str = ""
    scope: Scope = "admin"
    max_cost_per_day: float | None = None

    @property
    def sees_all(self) -> bool:
        return self.scope == "admin"

    @property
    def owner(self) -> str:
        """Return the owner of the user's runs."""
        return f"{USER_OWNER}{self.name}"


OWNER = User()
ANONYMOUS = User(scope="chat")  # has no token, and no runs


async def add_token(store: RunStore, name: str, scope: Scope, max_cost: float | None) -> str:
    """Save a new token and return it. It cannot be read again."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{quote_value(name)} is not a name for a token: use up to 64 small letters, digits, dots, dashes and underscores"
        )
    secret, id_, salt = secrets.token_urlsafe(SECRET_BYTES), secrets.token_hex(ID_BYTES), secrets.token_hex(SALT_BYTES)
    cap = None if max_cost is None else usd_to_nanos(Decimal(str(max_cost)))
    if not await store.save_token(TokenRow(name, id_, salt, _hash_secret(secret, salt), scope, cap, time.time())):
        raise UsageError(
            f"{quote_value(name)} has a token already: revoke it first with `council serve tokens revoke {name}`"
        )
    return f"ct-{id_}-{secret}"


async def revoke_token(store: RunStore, name: str) -> None:
    if not await store.revoke_token(name, time.time()):
        raise UsageError(f"there is no token {quote_value(name)}: `council serve tokens list` shows them")


async def find_user(store: RunStore, token: str) -> User | None:
    """Return the user of a token, or None if it is wrong or revoked."""
    parts = TOKEN.fullmatch(token)
    row = await store.find_token(parts["id"]) if parts else None
    if parts is None or row is None or not compare_digest(_hash_secret(parts["secret"], row.salt), row.digest):
        return None
    return User(row.name, cast(Scope, row.scope), None if row.cap is None else nanos_to_usd(row.cap))


def _hash_secret(secret: str, salt: str) -> str:
    """Return a keyed hash. A fast one is enough: the secret has 256 random bits, so it cannot be guessed."""
    return blake2b(secret.encode(), key=bytes.fromhex(salt), digest_size=32).hexdigest()
