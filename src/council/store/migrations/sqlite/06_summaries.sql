-- A short row for each run, in the order of creation: lists sort and filter by it, and parse no setup and no report.
-- A long question is not repeated in it. Triggers keep it current, whatever writes to `runs`.

CREATE TABLE summaries (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, folder TEXT NOT NULL,
       created REAL NOT NULL, status TEXT NOT NULL, detached INTEGER NOT NULL, unfinished INTEGER NOT NULL, protocol ANY, task ANY,
       question ANY, verdict ANY, outcome ANY, confidence ANY, seconds ANY, cost ANY) STRICT;

CREATE VIEW run_summaries (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost) AS SELECT id, name, folder, created, status, detached,
       status NOT IN ('complete', 'failed'), json_extract(setup, '$.protocol'), json_extract(setup, '$.question.task'),
       iif(length(json_extract(setup, '$.question.text')) > 1000, NULL, json_extract(setup, '$.question.text')),
       json_extract(report, '$.verdict'), json_extract(report, '$.outcome'), json_extract(report, '$.confidence'),
       json_extract(report, '$.seconds'), json_extract(report, '$.cost.usd')
       FROM (SELECT id, name, folder, created, status, detached, iif(json_valid(setup), setup, '{}') AS setup,
       iif(json_valid(report), report, '{}') AS report FROM runs);

INSERT INTO summaries (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost) SELECT * FROM run_summaries ORDER BY (SELECT rowid FROM runs WHERE runs.id = run_summaries.id);

CREATE INDEX summaries_in_order ON summaries (unfinished);

CREATE INDEX summaries_by_folder ON summaries (folder, unfinished);

CREATE INDEX summaries_by_status ON summaries (status, folder);

CREATE INDEX summaries_by_time ON summaries (created);

CREATE INDEX summaries_detached ON summaries (detached) WHERE detached = 1;

CREATE TRIGGER run_added AFTER INSERT ON runs BEGIN INSERT INTO summaries (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost) SELECT * FROM run_summaries WHERE id = new.id; END;

CREATE TRIGGER run_changed AFTER UPDATE OF id, name, folder, created, setup, status, report, detached ON runs BEGIN
       UPDATE summaries SET (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost) = (SELECT * FROM run_summaries WHERE id = new.id) WHERE id = old.id; END;

CREATE TRIGGER run_removed AFTER DELETE ON runs BEGIN DELETE FROM summaries WHERE id = old.id; END;
