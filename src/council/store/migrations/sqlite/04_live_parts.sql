-- Streamed text in parts, so that a write does not repeat the text before it. Versions before this one write to `live`.

DELETE FROM live;

CREATE TABLE live_parts (run TEXT, key TEXT, n INTEGER, text TEXT NOT NULL, PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID;
