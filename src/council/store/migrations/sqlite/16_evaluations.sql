-- Whether `council eval` made a run. Runs of earlier versions are not marked.

ALTER TABLE summaries ADD COLUMN evaluation INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER run_added;

DROP TRIGGER run_changed;

DROP VIEW run_summaries;

CREATE VIEW run_summaries (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost, owner, project, title, estimated, stops, saved, trust, evaluation) AS SELECT id, name, folder, created, status, detached,
       status NOT IN ('complete', 'failed'), json_extract(setup, '$.protocol'), json_extract(setup, '$.question.task'),
       iif(length(json_extract(setup, '$.question.text')) > 1000, NULL, json_extract(setup, '$.question.text')),
       json_extract(report, '$.verdict'), json_extract(report, '$.outcome'), json_extract(report, '$.confidence'),
       json_extract(report, '$.seconds'), json_extract(report, '$.cost.usd'), json_extract(setup, '$.owner'), json_extract(setup, '$.project'),
       title, json_extract(report, '$.cost.estimated'), json_array_length(report, '$.stops'),
       iif(json_type(report, '$.stops') = 'array', (SELECT sum(json_extract(value, '$.saved')) FROM json_each(report, '$.stops')), NULL),
       json_extract(report, '$.trust.level'), json_extract(setup, '$.batch.evaluation') IS 1
       FROM (SELECT title, id, name, folder, created, status, detached, iif(json_valid(setup), setup, '{}') AS setup,
       iif(json_valid(report), report, '{}') AS report FROM runs);

CREATE TRIGGER run_added AFTER INSERT ON runs BEGIN INSERT INTO summaries (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost, owner, project, title, estimated, stops, saved, trust, evaluation) SELECT * FROM run_summaries WHERE id = new.id; END;

CREATE TRIGGER run_changed AFTER UPDATE OF id, name, folder, created, setup, status, report, detached, title ON runs BEGIN
       UPDATE summaries SET (id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost, owner, project, title, estimated, stops, saved, trust, evaluation) = (SELECT * FROM run_summaries WHERE id = new.id) WHERE id = old.id; END;

CREATE INDEX summaries_of_evaluations ON summaries (evaluation) WHERE evaluation = 1;
