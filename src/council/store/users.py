"""Tokens of users, the runs that were started with them, and the keys with which a request is repeated safely."""

from __future__ import annotations

from council.store.interface import Connection, EarlierRequest, RequestKey, TokenRow
from council.store.queries import WRITE_STATEMENTS, RunQueries

TOKEN_COLUMNS = "name, id, salt, digest, scope, cap, created, revoked"
SAVE_TOKEN = f"""INSERT INTO tokens ({TOKEN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT (name) DO UPDATE SET
                 id = excluded.id, salt = excluded.salt, digest = excluded.digest, scope = excluded.scope, cap = excluded.cap,
                 created = excluded.created, revoked = NULL WHERE tokens.revoked IS NOT NULL"""


def _select_tokens(db: Connection, condition: str, *values: object) -> list[TokenRow]:
    return [TokenRow(*row) for row in db.execute(f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE {condition}", values)]


def _save_token(db: Connection, row: TokenRow) -> bool:
    values = (row.name, row.id, row.salt, row.digest, row.scope, row.cap, row.created)
    return db.execute(SAVE_TOKEN, values).rowcount == 1


def _revoke_token(db: Connection, name: str, at: float) -> bool:
    return db.execute("UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (at, name)).rowcount == 1


class UserQueries(RunQueries):
    """What a store knows about users."""

    async def save_token(self, row: TokenRow) -> bool:
        """Save a token, also for the name of a revoked one. Return False if the name has a token."""
        return await self._write("", lambda db: _save_token(db, row))

    async def list_tokens(self) -> list[TokenRow]:
        return await self._read(lambda db: _select_tokens(db, "1 = 1 ORDER BY name"))

    async def find_token(self, id_: str) -> TokenRow | None:
        """Return the token with this id, unless it is revoked."""
        found = await self._read(
            lambda db: _select_tokens(db, "id = ? AND revoked IS NULL", id_), after_own_writes=False
        )
        return found[0] if found else None

    async def revoke_token(self, name: str, at: float) -> bool:
        return await self._write("", lambda db: _revoke_token(db, name, at))

    async def find_request(self, owner: str, key: str) -> EarlierRequest | None:
        """Return the earlier request of this owner with this key."""
        query = "SELECT digest, run FROM idempotency WHERE owner = ? AND key = ?"
        row = await self._read(lambda db: db.execute(query, (owner, key)).fetchone())
        return EarlierRequest(*row) if row else None

    async def find_recent_request(self, owner: str, digest: str, since: float) -> str | None:
        """Return the run of the newest request of this owner with this content since a time."""
        query = "SELECT run FROM idempotency WHERE owner = ? AND digest = ? AND at >= ? ORDER BY at DESC LIMIT 1"
        row = await self._read(lambda db: db.execute(query, (owner, digest, since)).fetchone())
        return str(row[0]) if row else None

    async def save_request(self, run: str, key: RequestKey) -> None:
        kind, values = key.as_row()
        await self._write("", lambda db: db.execute(WRITE_STATEMENTS[kind], (run, *values)).rowcount)

    async def forget_requests(self, before: float) -> None:
        """Delete the keys of requests from before a time."""
        await self._write("", lambda db: db.execute("DELETE FROM idempotency WHERE at < ?", (before,)).rowcount)
