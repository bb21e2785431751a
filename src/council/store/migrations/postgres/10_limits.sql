-- What all processes know of the limits of a vendor, by provider or by provider and model: the levels of its token buckets, or
-- the limits that its answers state. A process changes the state that it has read only if no other one has changed it since.

CREATE UNLOGGED TABLE limits (name TEXT COLLATE "C" PRIMARY KEY, state TEXT NOT NULL) WITH (fillfactor = 50);
