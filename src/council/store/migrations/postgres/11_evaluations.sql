-- Whether `council eval` made a run. Runs of earlier versions are not marked.

ALTER TABLE runs ADD COLUMN evaluation INTEGER NOT NULL DEFAULT 0;

CREATE OR REPLACE VIEW summaries AS SELECT n, id, name, folder, created, status, detached, unfinished, protocol, task, question,
       verdict, outcome, confidence, seconds, cost, indexed, owner, project, title, estimated, stops, saved, trust, evaluation FROM runs;

CREATE OR REPLACE FUNCTION summarize_run() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE value json;
       BEGIN
         NEW.unfinished := CASE WHEN NEW.status IN ('complete', 'failed') THEN 0 ELSE 1 END;
         IF TG_OP = 'INSERT' OR NEW.setup IS DISTINCT FROM OLD.setup THEN
           BEGIN
             value := council.read_json(NEW.setup);
             NEW.protocol := value ->> 'protocol';
             NEW.task := value #>> '{question,task}';
             NEW.owner := value ->> 'owner';
             NEW.project := value ->> 'project';
             NEW.evaluation := (coalesce(value #>> '{batch,evaluation}', '') = 'true')::integer;
             NEW.question := value #>> '{question,text}';
             IF length(NEW.question) > 1000 THEN NEW.question := NULL; END IF;
           EXCEPTION WHEN data_exception THEN NEW.question := NULL; END;
         END IF;
         IF NEW.report = '' THEN
           NEW.verdict := NULL;
           NEW.outcome := NULL;
           NEW.confidence := NULL;
           NEW.trust := NULL;
           NEW.seconds := NULL;
           NEW.cost := NULL;
           NEW.estimated := NULL;
           NEW.stops := NULL;
           NEW.saved := NULL;
         ELSIF TG_OP = 'INSERT' OR NEW.report IS DISTINCT FROM OLD.report THEN
           BEGIN
             value := council.read_json(NEW.report);
             NEW.verdict := value ->> 'verdict';
             NEW.outcome := value ->> 'outcome';
             NEW.confidence := value ->> 'confidence';
             NEW.trust := value #>> '{trust,level}';
             NEW.seconds := value ->> 'seconds';
             NEW.cost := value #>> '{cost,usd}';
             SELECT count(*), sum((one ->> 'saved')::double precision) INTO NEW.stops, NEW.saved
               FROM json_array_elements(coalesce(value -> 'stops', '[]'::json)) one;
             NEW.estimated := (coalesce(value #>> '{cost,estimated}', '') = 'true')::integer;
           EXCEPTION WHEN data_exception THEN NEW.verdict := NULL; END;
         END IF;
         RETURN NEW;
       END $$;

CREATE INDEX runs_of_evaluations ON runs (evaluation) WHERE evaluation = 1;
