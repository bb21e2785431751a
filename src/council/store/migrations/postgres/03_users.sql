-- Tokens of users as keyed hashes, with a cap per day in billionths of a dollar; the runs that they started, also removed ones;
-- and the keys of requests that a client may repeat.

CREATE TABLE tokens (name TEXT COLLATE "C" PRIMARY KEY, id TEXT COLLATE "C" NOT NULL UNIQUE, salt TEXT NOT NULL,
       digest TEXT NOT NULL, scope TEXT NOT NULL, cap BIGINT, created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION);

CREATE TABLE user_runs (run TEXT COLLATE "C" PRIMARY KEY, name TEXT COLLATE "C" NOT NULL);

CREATE INDEX user_runs_by_name ON user_runs (name);

CREATE TABLE idempotency (run TEXT COLLATE "C" NOT NULL, owner TEXT COLLATE "C", key TEXT COLLATE "C", digest TEXT NOT NULL,
       at DOUBLE PRECISION NOT NULL, PRIMARY KEY (owner, key));
