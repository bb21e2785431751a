-- Texts that rows refer to. A table with row ids, because it stores long rows in less space.
CREATE TABLE texts (run TEXT NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (run, n)) STRICT;
