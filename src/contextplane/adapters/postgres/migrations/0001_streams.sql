-- Truth: what happened, in order. Nothing updates or deletes here; the triggers make sure of it.

CREATE TABLE schema_version (
  version integer NOT NULL
);

INSERT INTO schema_version VALUES (0);

CREATE TABLE catalog_table (
  name text COLLATE "C" PRIMARY KEY,
  role text NOT NULL CHECK (role IN ('truth', 'index')),
  note text NOT NULL
);

CREATE TABLE identity (
  store_id text COLLATE "C" PRIMARY KEY
);

CREATE TABLE event (
  stream text COLLATE "C" NOT NULL CHECK (length(stream) BETWEEN 1 AND 256),
  seq bigint NOT NULL CHECK (seq >= 1),
  kind text COLLATE "C" NOT NULL CHECK (length(kind) BETWEEN 1 AND 64),
  body bytea NOT NULL CHECK (length(body) <= 65536),
  PRIMARY KEY (stream, seq)
);

-- Each function looks for tables in this schema only, whoever causes it to run.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  RAISE EXCEPTION 'events are append-only';
END $$;

CREATE TRIGGER event_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON event
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_gap() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NEW.seq <> 1 + coalesce((SELECT max(seq) FROM event WHERE stream = NEW.stream), 0) THEN
    RAISE EXCEPTION 'events have no gap';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER event_has_no_gap BEFORE INSERT ON event
FOR EACH ROW EXECUTE FUNCTION refuse_gap();

INSERT INTO catalog_table VALUES
  ('schema_version', 'index', 'The number of the last migration that ran.'),
  ('catalog_table', 'index', 'This list: which table is truth and which is index.'),
  ('identity', 'index', 'The store that this catalog belongs to, as in config.json.'),
  ('event', 'truth', 'Append-only event streams: registry, runs, approvals, idempotency, handoff revisions, memory.');
