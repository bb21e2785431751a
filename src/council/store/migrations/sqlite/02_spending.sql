-- Spending in billionths of a dollar. `reserved` is null if the price is unknown, `charged` until there is an answer.

CREATE TABLE spending (run TEXT, key TEXT, n INTEGER, member TEXT NOT NULL, at REAL NOT NULL, day TEXT NOT NULL,
       price TEXT NOT NULL, reserved INTEGER, charged INTEGER, estimated INTEGER NOT NULL DEFAULT 0,
       PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID;

CREATE INDEX spending_by_day ON spending (day);
