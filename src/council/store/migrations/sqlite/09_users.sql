-- Tokens of users as keyed hashes, with a cap per day in billionths of a dollar; the runs that they started, also removed ones;
-- and the keys of requests that a client may repeat.

CREATE TABLE tokens (name TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, salt TEXT NOT NULL, digest TEXT NOT NULL,
       scope TEXT NOT NULL, cap INTEGER, created REAL NOT NULL, revoked REAL) STRICT, WITHOUT ROWID;

CREATE TABLE user_runs (run TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE INDEX user_runs_by_name ON user_runs (name);

CREATE TABLE idempotency (run TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
       PRIMARY KEY (owner, key)) STRICT, WITHOUT ROWID;

CREATE INDEX summaries_by_owner ON summaries (owner, unfinished);
