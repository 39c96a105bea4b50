-- Truth for a while: small objects whose files are not durable yet. One commit makes them durable with what they mean.

CREATE TABLE pending (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  data BLOB NOT NULL CHECK (length(data) <= 65536)
) STRICT;

-- Index: the list of handoff packs. Their streams and objects are what it is made from.

CREATE TABLE handoff (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 11),
  name TEXT,
  title TEXT,
  brief TEXT,
  status TEXT NOT NULL CHECK (status IN ('draft', 'finalized')),
  revision INTEGER NOT NULL CHECK (revision >= 1),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  updated_seconds INTEGER NOT NULL,
  updated_nanos INTEGER NOT NULL,
  expires_seconds INTEGER NOT NULL,
  expires_nanos INTEGER NOT NULL
) STRICT;

CREATE INDEX handoff_name ON handoff (name, id) WHERE name IS NOT NULL;

-- Each holds all that a filter asks for: what is not meant is passed over without looking at its row.
CREATE INDEX handoff_newest ON handoff (
  updated_seconds DESC, updated_nanos DESC, revision DESC, id, status, expires_seconds, expires_nanos
);

CREATE INDEX handoff_status ON handoff (
  status, updated_seconds DESC, updated_nanos DESC, revision DESC, id, expires_seconds, expires_nanos
);

CREATE INDEX handoff_deadline ON handoff (
  expires_seconds, expires_nanos, status, updated_seconds, updated_nanos, revision, id
);

-- How many packs end in each 4096 seconds, so that nobody counts them one by one.
CREATE TABLE handoff_tally (
  span INTEGER NOT NULL,
  status TEXT NOT NULL,
  packs INTEGER NOT NULL,
  PRIMARY KEY (span, status)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER handoff_tallied AFTER INSERT ON handoff BEGIN
  INSERT INTO handoff_tally VALUES (NEW.expires_seconds >> 12, NEW.status, 1)
  ON CONFLICT (span, status) DO UPDATE SET packs = packs + 1;
END;

CREATE TRIGGER handoff_untallied AFTER DELETE ON handoff BEGIN
  UPDATE handoff_tally SET packs = packs - 1 WHERE span = OLD.expires_seconds >> 12 AND status = OLD.status;
  DELETE FROM handoff_tally WHERE span = OLD.expires_seconds >> 12 AND status = OLD.status AND packs = 0;
END;

-- Case is folded before it comes here. No trigger keeps it in step: the schema is not trusted, so it may not touch a
-- virtual table.
CREATE VIRTUAL TABLE handoff_text USING fts5(text, tokenize = 'trigram case_sensitive 1');

INSERT INTO catalog_table VALUES
  ('pending', 'truth', 'Small objects that wait to become files; a row goes when its file is durable.'),
  ('handoff', 'index', 'The list of handoff packs: the newest revision of each.'),
  ('handoff_tally', 'index', 'How many handoff packs end when, kept by triggers.'),
  ('handoff_text', 'index', 'Title, name and brief of each handoff pack as one text, with its case folded.');
