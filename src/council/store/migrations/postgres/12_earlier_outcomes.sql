-- Outcomes that a later one has replaced, and the decisions that a person was asked about and skipped.

CREATE TABLE earlier_outcomes (run TEXT COLLATE "C" NOT NULL, at DOUBLE PRECISION NOT NULL, label TEXT NOT NULL,
       value TEXT NOT NULL, note TEXT NOT NULL, seats TEXT NOT NULL);

CREATE INDEX earlier_outcomes_by_run ON earlier_outcomes (run);

CREATE TABLE outcome_skips (run TEXT COLLATE "C" PRIMARY KEY, at DOUBLE PRECISION NOT NULL);
