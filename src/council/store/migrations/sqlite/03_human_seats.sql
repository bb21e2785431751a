-- Detached runs and questions to human seats.

ALTER TABLE runs ADD COLUMN detached INTEGER NOT NULL DEFAULT 0;

CREATE TABLE asks (run TEXT, key TEXT, seat TEXT NOT NULL, prompt TEXT NOT NULL, schema TEXT NOT NULL, at REAL NOT NULL,
       answer TEXT, PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID;
