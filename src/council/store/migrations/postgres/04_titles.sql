-- The title that a user gave a run, and whether its cost is an estimate.

ALTER TABLE runs ADD COLUMN title TEXT;

ALTER TABLE runs ADD COLUMN estimated INTEGER;

CREATE OR REPLACE VIEW summaries AS SELECT n, id, name, folder, created, status, detached, unfinished, protocol, task, question,
       verdict, outcome, confidence, seconds, cost, indexed, owner, project, title, estimated FROM runs;

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
             NEW.question := value #>> '{question,text}';
             IF length(NEW.question) > 1000 THEN NEW.question := NULL; END IF;
           EXCEPTION WHEN data_exception THEN NEW.question := NULL; END;
         END IF;
         IF NEW.report = '' THEN
           NEW.verdict := NULL; NEW.outcome := NULL; NEW.confidence := NULL; NEW.seconds := NULL; NEW.cost := NULL; NEW.estimated := NULL;
         ELSIF TG_OP = 'INSERT' OR NEW.report IS DISTINCT FROM OLD.report THEN
           BEGIN
             value := council.read_json(NEW.report);
             NEW.verdict := value ->> 'verdict';
             NEW.outcome := value ->> 'outcome';
             NEW.confidence := value ->> 'confidence';
             NEW.seconds := value ->> 'seconds';
             NEW.cost := value #>> '{cost,usd}'; NEW.estimated := (coalesce(value #>> '{cost,estimated}', '') = 'true')::integer;
           EXCEPTION WHEN data_exception THEN NEW.verdict := NULL; END;
         END IF;
         RETURN NEW;
       END $$;

UPDATE runs SET estimated = (coalesce(json_extract(report, '$.cost.estimated'), '') = 'true')::integer
       WHERE report <> '';
