-- Index: what objects are and what refers to them. `ctx fsck --rebuild` makes all of it again.

CREATE TABLE object (
  digest text COLLATE "C" PRIMARY KEY CHECK (length(digest) = 64),
  kind text COLLATE "C" NOT NULL CHECK (length(kind) BETWEEN 1 AND 64),
  size bigint NOT NULL CHECK (size >= 0),
  traced boolean NOT NULL
);

CREATE INDEX object_kind ON object (kind, digest);

CREATE TABLE edge (
  source text COLLATE "C" NOT NULL CHECK (length(source) = 64),
  position bigint NOT NULL,
  role text COLLATE "C" NOT NULL CHECK (length(role) BETWEEN 1 AND 256),
  target text COLLATE "C" NOT NULL CHECK (length(target) = 64),
  PRIMARY KEY (source, position),
  UNIQUE (source, role, target)
);

CREATE INDEX edge_target ON edge (target);

CREATE TABLE root (
  name text COLLATE "C" PRIMARY KEY CHECK (strpos(name, '/') > 1 AND length(name) <= 512),
  target text COLLATE "C" NOT NULL CHECK (length(target) = 64)
);

CREATE INDEX root_target ON root (target);

CREATE TABLE tally (
  what text COLLATE "C" NOT NULL CHECK (what IN ('object', 'root')),
  kind text COLLATE "C" NOT NULL,
  objects bigint NOT NULL,
  size bigint NOT NULL,
  PRIMARY KEY (what, kind)
);

-- Once for each statement and not for each row: a row that one transaction changes again and again becomes slow.
CREATE FUNCTION tally_objects() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO tally SELECT 'object', kind, count(*), sum(size) FROM added GROUP BY kind
    ON CONFLICT (what, kind) DO UPDATE SET objects = tally.objects + excluded.objects, size = tally.size + excluded.size;
  ELSIF TG_OP = 'DELETE' THEN
    UPDATE tally SET objects = tally.objects - gone.objects, size = tally.size - gone.size
    FROM (SELECT kind, count(*) AS objects, sum(size) AS size FROM removed GROUP BY kind) AS gone
    WHERE what = 'object' AND tally.kind = gone.kind;
  ELSE
    UPDATE tally SET size = tally.size + more.size
    FROM (
      SELECT kind, sum(size) AS size FROM (SELECT kind, size FROM added UNION ALL SELECT kind, -size FROM removed) AS sides
      GROUP BY kind HAVING sum(size) <> 0
    ) AS more
    WHERE what = 'object' AND tally.kind = more.kind;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER object_tallied AFTER INSERT ON object REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION tally_objects();

CREATE TRIGGER object_untallied AFTER DELETE ON object REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION tally_objects();

CREATE TRIGGER object_retallied AFTER UPDATE ON object REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION tally_objects();

CREATE FUNCTION tally_root() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO tally VALUES ('root', substr(NEW.name, 1, strpos(NEW.name, '/')), 1, 0)
    ON CONFLICT (what, kind) DO UPDATE SET objects = tally.objects + 1;
  ELSE
    UPDATE tally SET objects = objects - 1 WHERE what = 'root' AND kind = substr(OLD.name, 1, strpos(OLD.name, '/'));
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER root_tallied AFTER INSERT OR DELETE ON root
FOR EACH ROW EXECUTE FUNCTION tally_root();

CREATE TABLE mark (
  name text COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 256),
  value text NOT NULL CHECK (length(value) <= 1024)
);

INSERT INTO catalog_table VALUES
  ('object', 'index', 'The kind and the size of each object, and whether its edges are recorded.'),
  ('edge', 'index', 'Which object refers to which, and in which role.'),
  ('root', 'index', 'The names that keep objects alive, such as packs/<hex>.'),
  ('tally', 'index', 'How many objects and bytes of each kind there are, kept by triggers.'),
  ('mark', 'index', 'Where each index last stood, so that nothing is listed twice.');
