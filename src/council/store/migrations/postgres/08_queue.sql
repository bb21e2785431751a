-- Workers claim queued runs themselves: each has its queue, its priority and the time since which it waits. The tables of the
-- package procrastinate stay, if an earlier version has made them: its workers may still end their runs.

DROP TRIGGER run_queued ON runs;

DROP FUNCTION wake_worker();

ALTER TABLE runs ADD COLUMN queue TEXT COLLATE "C" NOT NULL DEFAULT 'default';

ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;

ALTER TABLE runs ADD COLUMN providers TEXT[] NOT NULL DEFAULT '{}';

ALTER TABLE runs ADD COLUMN waits_since TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();

CREATE FUNCTION queue_run() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE value json;
       BEGIN
         NEW.waits_since := clock_timestamp();
         value := council.read_json(NEW.setup);
         NEW.queue := coalesce(nullif(value ->> 'queue', ''), 'default');
         NEW.priority := coalesce((value ->> 'priority')::integer, 0);
         NEW.providers := ARRAY(
           SELECT DISTINCT split_part(one ->> 'member', ':', 1) FROM (
             SELECT json_array_elements(value #> '{roster,seats}') AS one
             UNION ALL SELECT json_array_elements(value #> '{roster,helpers}')
             UNION ALL SELECT value #> '{roster,chair}') listed
           WHERE one ->> 'member' IS NOT NULL);
         RETURN NEW;
       EXCEPTION WHEN data_exception THEN RETURN NEW; END $$;

CREATE TRIGGER run_queued BEFORE INSERT OR UPDATE OF status ON runs
       FOR EACH ROW WHEN (NEW.status = 'queued' AND NEW.detached = 1) EXECUTE FUNCTION queue_run();

UPDATE runs SET status = status WHERE detached = 1 AND status = 'queued';

CREATE INDEX runs_waiting ON runs (coalesce(owner, ''), priority DESC, waits_since, n)
       WHERE detached = 1 AND status IN ('queued', 'running');

-- A claim keeps other workers from a run until its lease is taken.
CREATE UNLOGGED TABLE claims (run TEXT COLLATE "C" PRIMARY KEY, worker TEXT NOT NULL, expires TIMESTAMPTZ NOT NULL);

ALTER TABLE workers ADD COLUMN version TEXT NOT NULL DEFAULT '';

ALTER TABLE workers ADD COLUMN started DOUBLE PRECISION NOT NULL DEFAULT 0;

ALTER TABLE workers ADD COLUMN running INTEGER NOT NULL DEFAULT 0;
