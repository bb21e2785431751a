-- PostgreSQL reads no JSON with the character 0, which a question or an answer may have.
CREATE FUNCTION read_json(body text) RETURNS json LANGUAGE sql IMMUTABLE AS
       $$ SELECT (CASE WHEN strpos(body, '\u0000') = 0 THEN body
                  ELSE regexp_replace(body, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END)::json $$;

CREATE FUNCTION json_extract(body text, path text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
       $$ BEGIN RETURN council.read_json(body) #>> string_to_array(substr(path, 3), '.');
       EXCEPTION WHEN data_exception THEN RETURN NULL; END $$;

CREATE FUNCTION json_extract(body text, first text, second text) RETURNS text LANGUAGE sql IMMUTABLE AS
       $$ SELECT json_build_array(council.read_json(body) #> string_to_array(substr(first, 3), '.'),
                                  council.read_json(body) #> string_to_array(substr(second, 3), '.'))::text $$;

CREATE FUNCTION json_valid(body text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
       $$ BEGIN PERFORM body::json; RETURN true; EXCEPTION WHEN data_exception THEN RETURN false; END $$;

CREATE FUNCTION json_items(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE AS
       $$ SELECT json_array_elements_text(council.read_json(list)) $$;

CREATE FUNCTION instr(body text, part text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT strpos(body, part) $$;

CREATE TABLE runs (id TEXT COLLATE "C" PRIMARY KEY, n BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE, name TEXT NOT NULL,
       folder TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, seed TEXT NOT NULL, setup TEXT NOT NULL,
       status TEXT NOT NULL DEFAULT 'running', report TEXT NOT NULL DEFAULT '', cancel INTEGER NOT NULL DEFAULT 0,
       detached INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0, unfinished INTEGER NOT NULL DEFAULT 1,
       protocol TEXT, task TEXT, question TEXT, verdict TEXT, outcome TEXT, confidence TEXT, seconds DOUBLE PRECISION,
       cost DOUBLE PRECISION, owner TEXT, project TEXT);

CREATE TABLE events (run TEXT COLLATE "C", seq BIGINT, at DOUBLE PRECISION, type TEXT, body TEXT, PRIMARY KEY (run, seq));

CREATE TABLE steps (run TEXT COLLATE "C", key TEXT COLLATE "C", fingerprint TEXT NOT NULL, PRIMARY KEY (run, key));

CREATE TABLE results (run TEXT COLLATE "C", key TEXT COLLATE "C", body TEXT NOT NULL, PRIMARY KEY (run, key));

CREATE TABLE intents (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, member TEXT NOT NULL, body BYTEA NOT NULL,
       at DOUBLE PRECISION NOT NULL, PRIMARY KEY (run, key, n));

CREATE TABLE settled (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, body TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
       PRIMARY KEY (run, key, n));

CREATE TABLE phases (run TEXT COLLATE "C", phase TEXT COLLATE "C", absences TEXT NOT NULL, PRIMARY KEY (run, phase));

CREATE UNLOGGED TABLE live_parts (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, text TEXT NOT NULL,
       PRIMARY KEY (run, key, n));

CREATE TABLE texts (run TEXT COLLATE "C" NOT NULL, n BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (run, n));

CREATE TABLE spending (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, member TEXT NOT NULL,
       at DOUBLE PRECISION NOT NULL, day TEXT COLLATE "C" NOT NULL, price TEXT NOT NULL, reserved BIGINT, charged BIGINT,
       estimated INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (run, key, n));

CREATE TABLE asks (run TEXT COLLATE "C", key TEXT COLLATE "C", seat TEXT NOT NULL, prompt TEXT NOT NULL,
       schema TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, answer TEXT, PRIMARY KEY (run, key));

-- Stays empty.
CREATE TABLE search_words (word TEXT COLLATE "C" PRIMARY KEY);

CREATE TABLE search_index (n BIGINT PRIMARY KEY, words TEXT NOT NULL);

CREATE TABLE leases (run TEXT COLLATE "C" PRIMARY KEY, token BIGINT NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL,
       pid BIGINT NOT NULL, started TEXT NOT NULL, expires TIMESTAMPTZ NOT NULL);

CREATE TABLE writers (id TEXT PRIMARY KEY, batch BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())
       WITH (fillfactor = 50);

CREATE VIEW summaries AS SELECT n, id, name, folder, created, status, detached, unfinished, protocol, task, question,
       verdict, outcome, confidence, seconds, cost, indexed, owner, project FROM runs;

CREATE INDEX runs_by_time ON runs (created);

CREATE INDEX runs_in_order ON runs (unfinished, n);

CREATE INDEX runs_by_folder ON runs (folder, unfinished, n);

CREATE INDEX runs_by_owner ON runs (owner, unfinished, n);

CREATE INDEX runs_by_project ON runs (project, unfinished, n);

CREATE INDEX runs_unfinished ON runs (status, detached) WHERE unfinished = 1;

CREATE INDEX runs_detached ON runs (n) WHERE detached = 1;

CREATE INDEX runs_not_indexed ON runs (n) WHERE indexed = 0;

CREATE INDEX spending_by_day ON spending (day);

CREATE INDEX leases_by_time ON leases (expires);

CREATE FUNCTION summarize_run() RETURNS trigger LANGUAGE plpgsql AS $$
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
           NEW.verdict := NULL; NEW.outcome := NULL; NEW.confidence := NULL; NEW.seconds := NULL; NEW.cost := NULL;
         ELSIF TG_OP = 'INSERT' OR NEW.report IS DISTINCT FROM OLD.report THEN
           BEGIN
             value := council.read_json(NEW.report);
             NEW.verdict := value ->> 'verdict';
             NEW.outcome := value ->> 'outcome';
             NEW.confidence := value ->> 'confidence';
             NEW.seconds := value ->> 'seconds';
             NEW.cost := value #>> '{cost,usd}';
           EXCEPTION WHEN data_exception THEN NEW.verdict := NULL; END;
         END IF;
         RETURN NEW;
       END $$;

CREATE TRIGGER run_changed BEFORE INSERT OR UPDATE OF status, setup, report ON runs
       FOR EACH ROW EXECUTE FUNCTION summarize_run();

-- The rows of leases stay locked until the transaction ends, so that no other process takes a run over before that.
CREATE FUNCTION check_leases(held text) RETURNS void LANGUAGE plpgsql AS $$
       DECLARE wanted text[] := string_to_array(held, ','); found integer;
       BEGIN
         PERFORM 1 FROM council.leases l JOIN
           (SELECT split_part(one, ':', 1) AS run, split_part(one, ':', 2)::bigint AS token FROM unnest(wanted) one) h
           ON l.run = h.run AND l.token = h.token ORDER BY l.run FOR SHARE OF l;
         GET DIAGNOSTICS found = ROW_COUNT;
         IF found <> cardinality(wanted) THEN RAISE EXCEPTION 'lease lost' USING ERRCODE = 'CL001'; END IF;
       END $$;

-- With this extension, a search for a part of a word uses an index. It is not part of every installation.
DO $$ BEGIN
         CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
         CREATE INDEX search_by_part ON council.search_index USING gin (words public.gin_trgm_ops);
       EXCEPTION WHEN OTHERS THEN NULL; END $$;
