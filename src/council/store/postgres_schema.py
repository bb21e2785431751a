"""Schema of the store in PostgreSQL, and the statements that differ from those of SQLite. Never edit a released version.

The tables have the names and columns of those in SQLite, so that one set of queries reads both. Differences:

- `summaries` is a view: a trigger keeps the short columns in `runs`.
- `texts` and requests are BYTEA. JSON is TEXT, because the type jsonb refuses characters that answers may contain.
- `leases` has the owners of runs, `writers` the last transaction of each process.
- `search_index` has the words of each run as one text.

Functions with the names of those of SQLite have the meaning that the queries use.
"""

from __future__ import annotations

from functools import lru_cache

from council.store.migrations import ADD_SEARCH
from council.store.queries import WRITE_STATEMENTS

SCHEMA = "council"
LEASE_LOST = "CL001"  # error code of `check_leases`

FUNCTIONS = (
    # PostgreSQL reads no JSON with the character 0, which a question or an answer may have.
    r"""CREATE FUNCTION read_json(body text) RETURNS json LANGUAGE sql IMMUTABLE AS
       $$ SELECT (CASE WHEN strpos(body, '\u0000') = 0 THEN body
                  ELSE regexp_replace(body, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END)::json $$""",
    """CREATE FUNCTION json_extract(body text, path text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
       $$ BEGIN RETURN council.read_json(body) #>> string_to_array(substr(path, 3), '.');
       EXCEPTION WHEN data_exception THEN RETURN NULL; END $$""",
    """CREATE FUNCTION json_extract(body text, first text, second text) RETURNS text LANGUAGE sql IMMUTABLE AS
       $$ SELECT json_build_array(council.read_json(body) #> string_to_array(substr(first, 3), '.'),
                                  council.read_json(body) #> string_to_array(substr(second, 3), '.'))::text $$""",
    """CREATE FUNCTION json_valid(body text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
       $$ BEGIN PERFORM body::json; RETURN true; EXCEPTION WHEN data_exception THEN RETURN false; END $$""",
    """CREATE FUNCTION json_items(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE AS
       $$ SELECT json_array_elements_text(council.read_json(list)) $$""",
    """CREATE FUNCTION instr(body text, part text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT strpos(body, part) $$""",
)
TABLES = (
    """CREATE TABLE runs (id TEXT COLLATE "C" PRIMARY KEY, n BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE, name TEXT NOT NULL,
       folder TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, seed TEXT NOT NULL, setup TEXT NOT NULL,
       status TEXT NOT NULL DEFAULT 'running', report TEXT NOT NULL DEFAULT '', cancel INTEGER NOT NULL DEFAULT 0,
       detached INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0, unfinished INTEGER NOT NULL DEFAULT 1,
       protocol TEXT, task TEXT, question TEXT, verdict TEXT, outcome TEXT, confidence TEXT, seconds DOUBLE PRECISION,
       cost DOUBLE PRECISION, owner TEXT, project TEXT)""",
    """CREATE TABLE events (run TEXT COLLATE "C", seq BIGINT, at DOUBLE PRECISION, type TEXT, body TEXT, PRIMARY KEY (run, seq))""",
    """CREATE TABLE steps (run TEXT COLLATE "C", key TEXT COLLATE "C", fingerprint TEXT NOT NULL, PRIMARY KEY (run, key))""",
    """CREATE TABLE results (run TEXT COLLATE "C", key TEXT COLLATE "C", body TEXT NOT NULL, PRIMARY KEY (run, key))""",
    """CREATE TABLE intents (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, member TEXT NOT NULL, body BYTEA NOT NULL,
       at DOUBLE PRECISION NOT NULL, PRIMARY KEY (run, key, n))""",
    """CREATE TABLE settled (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, body TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
       PRIMARY KEY (run, key, n))""",
    """CREATE TABLE phases (run TEXT COLLATE "C", phase TEXT COLLATE "C", absences TEXT NOT NULL, PRIMARY KEY (run, phase))""",
    """CREATE UNLOGGED TABLE live_parts (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, text TEXT NOT NULL,
       PRIMARY KEY (run, key, n))""",
    """CREATE TABLE texts (run TEXT COLLATE "C" NOT NULL, n BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (run, n))""",
    """CREATE TABLE spending (run TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT, member TEXT NOT NULL,
       at DOUBLE PRECISION NOT NULL, day TEXT COLLATE "C" NOT NULL, price TEXT NOT NULL, reserved BIGINT, charged BIGINT,
       estimated INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (run, key, n))""",
    """CREATE TABLE asks (run TEXT COLLATE "C", key TEXT COLLATE "C", seat TEXT NOT NULL, prompt TEXT NOT NULL,
       schema TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, answer TEXT, PRIMARY KEY (run, key))""",
    """CREATE TABLE search_words (word TEXT COLLATE "C" PRIMARY KEY)""",  # stays empty
    """CREATE TABLE search_index (n BIGINT PRIMARY KEY, words TEXT NOT NULL)""",
    """CREATE TABLE leases (run TEXT COLLATE "C" PRIMARY KEY, token BIGINT NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL,
       pid BIGINT NOT NULL, started TEXT NOT NULL, expires TIMESTAMPTZ NOT NULL)""",
    """CREATE TABLE writers (id TEXT PRIMARY KEY, batch BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())
       WITH (fillfactor = 50)""",
    """CREATE VIEW summaries AS SELECT n, id, name, folder, created, status, detached, unfinished, protocol, task, question,
       verdict, outcome, confidence, seconds, cost, indexed, owner, project FROM runs""",
)
INDEXES = (
    "CREATE INDEX runs_by_time ON runs (created)",
    "CREATE INDEX runs_in_order ON runs (unfinished, n)",
    "CREATE INDEX runs_by_folder ON runs (folder, unfinished, n)",
    "CREATE INDEX runs_by_owner ON runs (owner, unfinished, n)",
    "CREATE INDEX runs_by_project ON runs (project, unfinished, n)",
    "CREATE INDEX runs_unfinished ON runs (status, detached) WHERE unfinished = 1",
    "CREATE INDEX runs_detached ON runs (n) WHERE detached = 1",
    "CREATE INDEX runs_not_indexed ON runs (n) WHERE indexed = 0",
    "CREATE INDEX spending_by_day ON spending (day)",
    "CREATE INDEX leases_by_time ON leases (expires)",
)
TRIGGERS = (
    """CREATE FUNCTION summarize_run() RETURNS trigger LANGUAGE plpgsql AS $$
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
       END $$""",
    """CREATE TRIGGER run_changed BEFORE INSERT OR UPDATE OF status, setup, report ON runs
       FOR EACH ROW EXECUTE FUNCTION summarize_run()""",
    # The rows of leases stay locked until the transaction ends, so that no other process takes a run over before that.
    f"""CREATE FUNCTION check_leases(held text) RETURNS void LANGUAGE plpgsql AS $$
       DECLARE wanted text[] := string_to_array(held, ','); found integer;
       BEGIN
         PERFORM 1 FROM council.leases l JOIN
           (SELECT split_part(one, ':', 1) AS run, split_part(one, ':', 2)::bigint AS token FROM unnest(wanted) one) h
           ON l.run = h.run AND l.token = h.token ORDER BY l.run FOR SHARE OF l;
         GET DIAGNOSTICS found = ROW_COUNT;
         IF found <> cardinality(wanted) THEN RAISE EXCEPTION 'lease lost' USING ERRCODE = '{LEASE_LOST}'; END IF;
       END $$""",
    # With this extension, a search for a part of a word uses an index. It is not part of every installation.
    """DO $$ BEGIN
         CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
         CREATE INDEX search_by_part ON council.search_index USING gin (words public.gin_trgm_ops);
       EXCEPTION WHEN OTHERS THEN NULL; END $$""",
)
QUEUE_SCHEMA = "procrastinate"  # means the schema of that package
RUN_TASK = "council.run"
WORKERS = (
    QUEUE_SCHEMA,
    """CREATE UNLOGGED TABLE workers (id TEXT PRIMARY KEY, host TEXT NOT NULL, pid BIGINT NOT NULL, queues TEXT NOT NULL,
       expires TIMESTAMPTZ NOT NULL)""",
    """CREATE UNLOGGED TABLE rates (provider TEXT PRIMARY KEY, free_from TIMESTAMPTZ NOT NULL) WITH (fillfactor = 50)""",
    # The job that wakes a worker is stored together with the queued run. It has the name of the run only.
    f"""CREATE FUNCTION wake_worker() RETURNS trigger LANGUAGE plpgsql AS $$
       DECLARE wanted text := 'default'; urgency integer := 0;
       BEGIN
         BEGIN
           wanted := coalesce(council.read_json(NEW.setup) ->> 'queue', wanted);
           urgency := coalesce((council.read_json(NEW.setup) ->> 'priority')::integer, urgency);
         EXCEPTION WHEN data_exception THEN NULL; END;
         PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(wanted, '{RUN_TASK}', urgency, NULL, NULL,
           jsonb_build_object('run', NEW.id), NULL)]::procrastinate_job_to_defer_v1[]);
         RETURN NULL;
       END $$""",
    """CREATE TRIGGER run_queued AFTER INSERT OR UPDATE OF status ON runs
       FOR EACH ROW WHEN (NEW.status = 'queued' AND NEW.detached = 1) EXECUTE FUNCTION wake_worker()""",
)
USERS = (
    """CREATE TABLE tokens (name TEXT COLLATE "C" PRIMARY KEY, id TEXT COLLATE "C" NOT NULL UNIQUE, salt TEXT NOT NULL,
       digest TEXT NOT NULL, scope TEXT NOT NULL, cap BIGINT, created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION)""",
    """CREATE TABLE user_runs (run TEXT COLLATE "C" PRIMARY KEY, name TEXT COLLATE "C" NOT NULL)""",
    "CREATE INDEX user_runs_by_name ON user_runs (name)",
    """CREATE TABLE idempotency (run TEXT COLLATE "C" NOT NULL, owner TEXT COLLATE "C", key TEXT COLLATE "C", digest TEXT NOT NULL,
       at DOUBLE PRECISION NOT NULL, PRIMARY KEY (owner, key))""",
)
# The title that a user gave a run, and whether its cost is an estimate.
COST_LINE = "NEW.cost := value #>> '{cost,usd}';"
TITLES = (
    "ALTER TABLE runs ADD COLUMN title TEXT",
    "ALTER TABLE runs ADD COLUMN estimated INTEGER",
    TABLES[-1]
    .replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
    .replace("project FROM", "project, title, estimated FROM"),
    TRIGGERS[0]
    .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace("NEW.cost := NULL;", "NEW.cost := NULL; NEW.estimated := NULL;")
    .replace(
        COST_LINE, f"{COST_LINE} NEW.estimated := (coalesce(value #>> '{{cost,estimated}}', '') = 'true')::integer;"
    ),
    """UPDATE runs SET estimated = (coalesce(json_extract(report, '$.cost.estimated'), '') = 'true')::integer
       WHERE report <> ''""",
)
OUTCOMES = (
    """CREATE TABLE outcomes (run TEXT COLLATE "C" PRIMARY KEY, at DOUBLE PRECISION NOT NULL, label TEXT NOT NULL,
       value TEXT NOT NULL, note TEXT NOT NULL, seats TEXT NOT NULL)""",
)
# The stops of a run, and what they saved by the plan's estimate, in dollars; null if it is not known.
SUM_STOPS = """SELECT count(*), sum((one ->> 'saved')::double precision) INTO NEW.stops, NEW.saved
               FROM json_array_elements(coalesce(value -> 'stops', '[]'::json)) one;"""
STOPS = (
    "ALTER TABLE runs ADD COLUMN stops INTEGER",
    "ALTER TABLE runs ADD COLUMN saved DOUBLE PRECISION",
    TITLES[2].replace("title, estimated FROM", "title, estimated, stops, saved FROM"),
    TITLES[3]
    .replace("NEW.estimated := NULL;", "NEW.estimated := NULL; NEW.stops := NULL; NEW.saved := NULL;")
    .replace(COST_LINE, f"{COST_LINE} {SUM_STOPS}"),
)
MIGRATIONS: list[tuple[str, ...]] = [
    (*FUNCTIONS, *TABLES, *INDEXES, *TRIGGERS),
    WORKERS,
    USERS,
    TITLES,
    OUTCOMES,
    STOPS,
]

# Statements of the queries that PostgreSQL spells differently.
REPLACED = {
    "SELECT word FROM search_words WHERE instr(word, ?) LIMIT ?": "SELECT CAST(? AS TEXT) LIMIT ?",
    "SELECT rowid FROM search_index WHERE search_index MATCH ? LIMIT ?": (
        r"SELECT n FROM search_index WHERE words LIKE '%' || replace(trim(both '\"' from ?), '_', '\_') || '%' LIMIT ?"
    ),
    "SELECT rowid FROM search_index LIMIT 0": "SELECT n FROM search_index LIMIT 0",
    # Two processes may index a run at once: the one that has handed it on, and the one that ends it.
    "INSERT INTO search_index (rowid, words) VALUES (?, ?)": (
        "INSERT INTO search_index (n, words) VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET words = excluded.words"
    ),
    "INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', ?, ?)": (
        "DELETE FROM search_index WHERE n = ? AND CAST(? AS TEXT) IS NOT NULL"
    ),
    "INSERT OR IGNORE INTO search_words SELECT value FROM json_each(?)": "SELECT CAST(? AS TEXT) WHERE false",
    "DROP TABLE IF EXISTS search_index": "DELETE FROM search_index",
    ADD_SEARCH[-1]: "SELECT 1",
    "DELETE FROM live WHERE run = ?": "SELECT CAST(? AS TEXT) WHERE false",  # a table of older versions
    "UPDATE settled SET body = json_object('usage', json_extract(body, '$.usage')) WHERE run = ?": (
        "UPDATE settled SET body = json_build_object('usage', body::json -> 'usage')::text WHERE run = ?"
    ),
}

# Checks

INVALID_INDEXES = """SELECT 'the index ' || c.relname || ' is invalid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                     WHERE NOT i.indisvalid AND c.relnamespace = 'council'::regnamespace"""
LOST_ROWS = " UNION ALL ".join(
    f"SELECT '{table}: rows of the unknown run ' || run FROM {table} WHERE run NOT IN (SELECT id FROM runs) GROUP BY run"
    for table in ("events", "steps", "results", "intents", "phases", "texts", "asks")
)

# Grouped rows

INSERTED = {
    # kind: table, columns; the first one is the run
    "run": ("runs", "id name folder created seed setup"),
    "event": ("events", "run seq at type body"),
    "step": ("steps", "run key fingerprint"),
    "result": ("results", "run key body"),
    "intent": ("intents", "run key n member body at"),
    "settled": ("settled", "run key n body at"),
    "phase": ("phases", "run phase absences"),
    "text": ("texts", "run n body"),
    "live": ("live_parts", "run key n text"),
    "reserve": ("spending", "run key n member at day price reserved"),
}
ON_CONFLICT = {"reserve": WRITE_STATEMENTS["reserve"][WRITE_STATEMENTS["reserve"].index("ON CONFLICT") :]}
# Statements over a list of values, after the inserts.
CHANGED = {
    "charge": (
        "text text bigint bigint integer",
        """UPDATE spending s SET charged = v.c4, estimated = v.c5 FROM (VALUES {}) v (c1, c2, c3, c4, c5)
           WHERE s.run = v.c1 AND s.key = v.c2 AND s.n = v.c3""",
    ),
    "discard_stream": (
        "text text",
        "DELETE FROM live_parts l USING (VALUES {}) v (c1, c2) WHERE l.run = v.c1 AND l.key = v.c2",
    ),
    "discard_streams": ("text", "DELETE FROM live_parts l USING (VALUES {}) v (c1) WHERE l.run = v.c1"),
    "close": (
        "text text text",
        "UPDATE runs r SET status = v.c2, report = v.c3, cancel = 0 FROM (VALUES {}) v (c1, c2, c3) WHERE r.id = v.c1",
    ),
    "release_lease": (
        "text text bigint",  # its rows belong to no run, so that a run whose rows failed is released too
        "DELETE FROM leases l USING (VALUES {}) v (c1, c2, c3) WHERE l.run = v.c2 AND l.token = v.c3",
    ),
}
ADD_LEASE = """INSERT INTO leases (run, token, owner, host, pid, started, expires)
               VALUES (?, ?, ?, ?, ?, ?, clock_timestamp() + make_interval(secs => ?))"""
RELEASE_LEASE = "DELETE FROM leases WHERE run = ? AND token = ?"
MARK_BATCH = """INSERT INTO writers (id, batch) VALUES ($1, $2)
                ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = clock_timestamp()"""
PACKED = frozenset({"run", "event", "result", "intent", "settled", "phase"})  # rows that may have long texts
GROUPED = frozenset({*INSERTED, *CHANGED, "lease"})
PUBLIC_KINDS = frozenset(
    {"event", "live", "close", "cancel", "queue", "detach"}
)  # rows that followers of a run wait for


@lru_cache(maxsize=4096)
def make_insert(kind: str, count: int) -> str:
    table, columns = INSERTED[kind]
    names = columns.split()
    rows = (
        ", ".join(f"${at}" for at in range(start, start + len(names)))
        for start in range(1, count * len(names) + 1, len(names))
    )
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({'), ('.join(rows)}) {ON_CONFLICT.get(kind, '')}"


@lru_cache(maxsize=4096)
def make_change(kind: str, count: int) -> str:
    types, statement = CHANGED[kind]
    kinds = types.split()
    rows = []
    for start in range(1, count * len(kinds) + 1, len(kinds)):
        rows.append(f"({', '.join(f'${start + at}::{type_}' for at, type_ in enumerate(kinds))})")
    return statement.format(", ".join(rows))
