-- Index: what objects are and what refers to them. `ctx fsck --rebuild` makes all of it again.

CREATE TABLE object (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  kind TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 64),
  size INTEGER NOT NULL CHECK (size >= 0),
  traced INTEGER NOT NULL CHECK (traced IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE edge (
  source TEXT NOT NULL CHECK (length(source) = 64),
  position INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (length(role) BETWEEN 1 AND 256),
  target TEXT NOT NULL CHECK (length(target) = 64),
  PRIMARY KEY (source, position),
  UNIQUE (source, role, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX edge_target ON edge (target);

CREATE TABLE root (
  name TEXT PRIMARY KEY CHECK (instr(name, '/') > 1 AND length(name) <= 512),
  target TEXT NOT NULL CHECK (length(target) = 64)
) STRICT, WITHOUT ROWID;

CREATE INDEX root_target ON root (target);

CREATE TABLE tally (
  what TEXT NOT NULL CHECK (what IN ('object', 'root')),
  kind TEXT NOT NULL,
  objects INTEGER NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY (what, kind)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER object_tallied AFTER INSERT ON object BEGIN
  INSERT INTO tally VALUES ('object', NEW.kind, 1, NEW.size)
  ON CONFLICT (what, kind) DO UPDATE SET objects = objects + 1, size = size + NEW.size;
END;

CREATE TRIGGER object_untallied AFTER DELETE ON object BEGIN
  UPDATE tally SET objects = objects - 1, size = size - OLD.size WHERE what = 'object' AND kind = OLD.kind;
END;

CREATE TRIGGER object_retallied AFTER UPDATE OF size ON object BEGIN
  UPDATE tally SET size = size - OLD.size + NEW.size WHERE what = 'object' AND kind = NEW.kind;
END;

CREATE TRIGGER root_tallied AFTER INSERT ON root BEGIN
  INSERT INTO tally VALUES ('root', substr(NEW.name, 1, instr(NEW.name, '/')), 1, 0)
  ON CONFLICT (what, kind) DO UPDATE SET objects = objects + 1;
END;

CREATE TRIGGER root_untallied AFTER DELETE ON root BEGIN
  UPDATE tally SET objects = objects - 1 WHERE what = 'root' AND kind = substr(OLD.name, 1, instr(OLD.name, '/'));
END;

CREATE TABLE mark (
  name TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 256),
  value TEXT NOT NULL CHECK (length(value) <= 1024)
) STRICT, WITHOUT ROWID;

INSERT INTO catalog_table VALUES
  ('object', 'index', 'The kind and the size of each object, and whether its edges are recorded.'),
  ('edge', 'index', 'Which object refers to which, and in which role.'),
  ('root', 'index', 'The names that keep objects alive, such as packs/<hex>.'),
  ('tally', 'index', 'How many objects and bytes of each kind there are, kept by triggers.'),
  ('mark', 'index', 'Where each index last stood, so that nothing is listed twice.');
