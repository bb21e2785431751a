-- Full-text search. SQLite may have been built without it: then a search reads the texts of all runs.

ALTER TABLE summaries ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;

CREATE INDEX summaries_not_indexed ON summaries (indexed) WHERE indexed = 0;

CREATE TABLE search_words (word TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE search_index USING fts5(words, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'");
