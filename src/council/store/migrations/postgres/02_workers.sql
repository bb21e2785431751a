-- Stands for the schema of the package procrastinate, in the version that is installed.
procrastinate;

CREATE UNLOGGED TABLE workers (id TEXT PRIMARY KEY, host TEXT NOT NULL, pid BIGINT NOT NULL, queues TEXT NOT NULL,
       expires TIMESTAMPTZ NOT NULL);

CREATE UNLOGGED TABLE rates (provider TEXT PRIMARY KEY, free_from TIMESTAMPTZ NOT NULL) WITH (fillfactor = 50);

-- The job that wakes a worker is stored together with the queued run. It has the name of the run only.
CREATE FUNCTION wake_worker() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE wanted text := 'default'; urgency integer := 0;
       BEGIN
         BEGIN
           wanted := coalesce(council.read_json(NEW.setup) ->> 'queue', wanted);
           urgency := coalesce((council.read_json(NEW.setup) ->> 'priority')::integer, urgency);
         EXCEPTION WHEN data_exception THEN NULL; END;
         PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(wanted, 'council.run', urgency, NULL, NULL,
           jsonb_build_object('run', NEW.id), NULL)]::procrastinate_job_to_defer_v1[]);
         RETURN NULL;
       END $$;

CREATE TRIGGER run_queued AFTER INSERT OR UPDATE OF status ON runs
       FOR EACH ROW WHEN (NEW.status = 'queued' AND NEW.detached = 1) EXECUTE FUNCTION wake_worker();
