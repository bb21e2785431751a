-- What runs have used since this version, with those that were removed: requests, retries, answers, faults, tokens, cost in
-- billionths of a dollar, councils that ended, and takeovers. A transaction adds to rows that no other one uses at that moment.
-- An error of these functions never stops a run.

CREATE TABLE totals (part INTEGER NOT NULL, name TEXT COLLATE "C" NOT NULL, provider TEXT COLLATE "C" NOT NULL,
       kind TEXT COLLATE "C" NOT NULL, value BIGINT NOT NULL, PRIMARY KEY (part, name, provider, kind)) WITH (fillfactor = 50);

CREATE FUNCTION choose_totals_part() RETURNS integer LANGUAGE plpgsql AS $$
       BEGIN
         FOR free IN 0 .. 999 LOOP
           IF pg_try_advisory_xact_lock(1953461345, free) THEN RETURN free; END IF;
         END LOOP;
         PERFORM pg_advisory_xact_lock(1953461345, 1000);
         RETURN 1000;
       END $$;

CREATE FUNCTION add_total(name text, provider text, kind text, value bigint) RETURNS void LANGUAGE sql AS $$
       INSERT INTO council.totals AS t (part, name, provider, kind, value)
       VALUES (council.choose_totals_part(), name, provider, kind, value)
       ON CONFLICT (part, name, provider, kind) DO UPDATE SET value = t.value + excluded.value $$;

CREATE FUNCTION count_requests() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE mine integer := council.choose_totals_part();
       BEGIN
         INSERT INTO council.totals AS t (part, name, provider, kind, value)
         SELECT mine, one.name, one.provider, '', one.value FROM (
           SELECT 'requests' AS name, split_part(member, ':', 1) AS provider, count(*) AS value FROM added GROUP BY 2
           UNION ALL SELECT 'retries', split_part(member, ':', 1), count(*) FROM added WHERE n > 1 GROUP BY 2) one
         ON CONFLICT (part, name, provider, kind) DO UPDATE SET value = t.value + excluded.value;
         RETURN NULL;
       EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$;

CREATE FUNCTION count_results() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE mine integer := council.choose_totals_part();
       BEGIN
         INSERT INTO council.totals AS t (part, name, provider, kind, value)
         WITH results AS MATERIALIZED (
           SELECT split_part(i.member, ':', 1) AS provider, council.read_json(s.body) AS body
           FROM added s JOIN council.intents i ON i.run = s.run AND i.key = s.key AND i.n = s.n)
         SELECT mine, one.name, one.provider, one.kind, one.value FROM (
           SELECT 'answers' AS name, provider, '' AS kind, count(*) AS value FROM results
             WHERE body ->> 'fault' IS NULL GROUP BY provider
           UNION ALL SELECT 'faults', provider, body ->> 'fault', count(*) FROM results
             WHERE body ->> 'fault' IS NOT NULL GROUP BY provider, body ->> 'fault'
           UNION ALL SELECT 'tokens', provider, used.key, sum(used.value::bigint) FROM results, json_each_text(body -> 'usage') used
             GROUP BY provider, used.key) one
         ON CONFLICT (part, name, provider, kind) DO UPDATE SET value = t.value + excluded.value;
         RETURN NULL;
       EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$;

CREATE FUNCTION count_charges() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE mine integer := council.choose_totals_part();
       BEGIN
         INSERT INTO council.totals AS t (part, name, provider, kind, value)
         SELECT mine, 'cost', split_part(a.member, ':', 1), '', sum(coalesce(a.charged, 0) - coalesce(b.charged, 0))
         FROM after a JOIN before b ON a.run = b.run AND a.key = b.key AND a.n = b.n
         GROUP BY split_part(a.member, ':', 1) HAVING sum(coalesce(a.charged, 0) - coalesce(b.charged, 0)) <> 0
         ON CONFLICT (part, name, provider, kind) DO UPDATE SET value = t.value + excluded.value;
         RETURN NULL;
       EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$;

CREATE FUNCTION count_ended_run() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         PERFORM council.add_total('councils', '', NEW.status, 1);
         RETURN NULL;
       EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$;

CREATE TRIGGER requests_added AFTER INSERT ON intents REFERENCING NEW TABLE AS added
       FOR EACH STATEMENT EXECUTE FUNCTION count_requests();

CREATE TRIGGER results_added AFTER INSERT ON settled REFERENCING NEW TABLE AS added
       FOR EACH STATEMENT EXECUTE FUNCTION count_results();

CREATE TRIGGER charges_changed AFTER UPDATE ON spending REFERENCING OLD TABLE AS before NEW TABLE AS after
       FOR EACH STATEMENT EXECUTE FUNCTION count_charges();

CREATE TRIGGER run_ended AFTER UPDATE OF status ON runs
       FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status AND NEW.status IN ('complete', 'incomplete', 'failed'))
       EXECUTE FUNCTION count_ended_run();
