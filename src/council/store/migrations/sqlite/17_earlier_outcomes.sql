-- Outcomes that a later one has replaced, and the decisions that a person was asked about and skipped.

CREATE TABLE earlier_outcomes (run TEXT NOT NULL, at REAL NOT NULL, label TEXT NOT NULL, value TEXT NOT NULL, note TEXT NOT NULL,
       seats TEXT NOT NULL) STRICT;

CREATE INDEX earlier_outcomes_by_run ON earlier_outcomes (run);

CREATE TABLE outcome_skips (run TEXT PRIMARY KEY, at REAL NOT NULL) STRICT, WITHOUT ROWID;
