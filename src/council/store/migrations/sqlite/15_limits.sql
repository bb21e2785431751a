-- What all processes know of the limits of a vendor, by provider or by provider and model: the levels of its token buckets, or
-- the limits that its answers state.

CREATE TABLE limits (name TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
