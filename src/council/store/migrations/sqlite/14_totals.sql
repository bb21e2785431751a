-- What runs have used: requests, retries, answers, faults, tokens, cost in billionths of a dollar, and councils that ended. The
-- view reads the rows of the runs; the table has the figures of removed ones.

CREATE TABLE removed_totals (name TEXT NOT NULL, provider TEXT NOT NULL, kind TEXT NOT NULL, value INTEGER NOT NULL,
       PRIMARY KEY (name, provider, kind)) STRICT, WITHOUT ROWID;

CREATE VIEW run_totals (run, name, provider, kind, value) AS
       SELECT run, 'requests', substr(member, 1, instr(member || ':', ':') - 1), '', 1 FROM intents
       UNION ALL SELECT run, 'retries', substr(member, 1, instr(member || ':', ':') - 1), '', 1 FROM intents WHERE n > 1
       UNION ALL SELECT i.run, iif(json_extract(s.body, '$.fault') IS NULL, 'answers', 'faults'),
         substr(i.member, 1, instr(i.member || ':', ':') - 1), coalesce(json_extract(s.body, '$.fault'), ''), 1
         FROM intents i JOIN settled s ON s.run = i.run AND s.key = i.key AND s.n = i.n WHERE json_valid(s.body)
       UNION ALL SELECT i.run, 'tokens', substr(i.member, 1, instr(i.member || ':', ':') - 1), used.key, used.value
         FROM intents i JOIN settled s ON s.run = i.run AND s.key = i.key AND s.n = i.n
         JOIN json_each(iif(json_valid(s.body), s.body, '{}'), '$.usage') used
       UNION ALL SELECT i.run, 'cost', substr(i.member, 1, instr(i.member || ':', ':') - 1), '', p.charged
         FROM intents i JOIN spending p ON p.run = i.run AND p.key = i.key AND p.n = i.n WHERE p.charged IS NOT NULL
       UNION ALL SELECT id, 'councils', '', status, 1 FROM runs WHERE status IN ('complete', 'incomplete', 'failed');

CREATE VIEW totals (name, provider, kind, value) AS SELECT name, provider, kind, sum(value) FROM (
       SELECT name, provider, kind, value FROM run_totals UNION ALL SELECT name, provider, kind, value FROM removed_totals)
       GROUP BY name, provider, kind;
