"""Tokens of users, the runs that were started with them, and the keys with which a request is repeated safely."""

from __future__ import annotations

from council.store.interface import EarlierRequest, RequestKey, TokenRow
from council.store.queries import WRITE_STATEMENTS, RunQueries

TOKEN_COLUMNS = "name, id, salt, digest, scope, cap, created, revoked"
SAVE_TOKEN = f"""INSERT INTO tokens ({TOKEN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT (name) DO UPDATE SET
                 id = excluded.id, salt = excluded.salt, digest = excluded.digest, scope = excluded.scope, cap = excluded.cap,
                 created = excluded.created, revoked = NULL WHERE tokens.revoked IS NOT NULL"""


class UserQueries(RunQueries):
    """What a store knows about users."""

    async def save_token(self, row: TokenRow) -> bool:
        """Save a token, also for the name of a revoked one. Return False if the name has a token."""
        values = (row.name, row.id, row.salt, row.digest, row.scope, row.cap, row.created)
        return await self._write("", lambda db: db.execute(SAVE_TOKEN, values).rowcount == 1)

    async def list_tokens(self) -> list[TokenRow]:
        return [TokenRow(*row) for row in await self._select(f"SELECT {TOKEN_COLUMNS} FROM tokens ORDER BY name")]

    async def find_token(self, id_: str) -> TokenRow | None:
        """Return the token with this id, unless it is revoked."""
        query = f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE id = ? AND revoked IS NULL"
        rows = await self._select(query, id_, after_own_writes=False)
        return TokenRow(*rows[0]) if rows else None

    async def revoke_token(self, name: str, at: float) -> bool:
        query = "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL"
        return await self._write("", lambda db: db.execute(query, (at, name)).rowcount == 1)

    async def find_request(self, owner: str, key: str) -> EarlierRequest | None:
        """Return the earlier request of this owner with this key."""
        rows = await self._select("SELECT digest, run FROM idempotency WHERE owner = ? AND key = ?", owner, key)
        return EarlierRequest(*rows[0]) if rows else None

    async def find_recent_request(self, owner: str, digest: str, since: float) -> str | None:
        """Return the run of the newest request of this owner with this content since a time."""
        query = "SELECT run FROM idempotency WHERE owner = ? AND digest = ? AND at >= ? ORDER BY at DESC LIMIT 1"
        rows = await self._select(query, owner, digest, since)
        return rows[0][0] if rows else None

    async def save_request(self, run: str, key: RequestKey) -> None:
        kind, values = key.as_row()
        await self._write("", lambda db: db.execute(WRITE_STATEMENTS[kind], (run, *values)))

    async def forget_requests(self, before: float) -> None:
        """Delete the keys of requests from before a time."""
        await self._write("", lambda db: db.execute("DELETE FROM idempotency WHERE at < ?", (before,)))
