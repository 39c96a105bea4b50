-- Truth: what happened, in order. Nothing updates or deletes here; the triggers make sure of it.

CREATE TABLE catalog_table (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('truth', 'index')),
  note TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE identity (
  store_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
  stream TEXT NOT NULL CHECK (length(stream) BETWEEN 1 AND 256),
  seq INTEGER NOT NULL CHECK (seq >= 1),
  kind TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 64),
  body BLOB NOT NULL CHECK (length(body) <= 65536),
  PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER event_has_no_gap BEFORE INSERT ON event
WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM event WHERE stream = NEW.stream), 0)
BEGIN SELECT RAISE(ABORT, 'events have no gap'); END;

INSERT INTO catalog_table VALUES
  ('catalog_table', 'index', 'This list: which table is truth and which is index.'),
  ('identity', 'index', 'The store that this catalog belongs to, as in config.json.'),
  ('event', 'truth', 'Append-only event streams: registry, runs, approvals, idempotency, handoff revisions, memory.');
