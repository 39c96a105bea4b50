-- Truth for a while: small objects whose files are not durable yet. One commit makes them durable with what they mean.

CREATE TABLE pending (
  digest text COLLATE "C" PRIMARY KEY CHECK (length(digest) = 64),
  data bytea NOT NULL CHECK (length(data) <= 65536)
);

-- Index: the list of handoff packs. Their streams and objects are what it is made from. Title, name and
-- brief are searched as one text, whose case is folded before it comes here; the trigrams are those of that text.

CREATE TABLE handoff (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE CHECK (length(id) = 11),
  name text COLLATE "C",
  title text,
  brief text,
  status text COLLATE "C" NOT NULL CHECK (status IN ('draft', 'finalized')),
  revision bigint NOT NULL CHECK (revision >= 1),
  digest text COLLATE "C" NOT NULL CHECK (length(digest) = 64),
  updated_seconds bigint NOT NULL,
  updated_nanos bigint NOT NULL,
  expires_seconds bigint NOT NULL,
  expires_nanos bigint NOT NULL,
  searched text COLLATE "C" NOT NULL,
  trigrams text[] COLLATE "C" NOT NULL
);

CREATE INDEX handoff_name ON handoff USING hash (name);

CREATE INDEX handoff_newest ON handoff (updated_seconds DESC, updated_nanos DESC, revision DESC, id);

CREATE INDEX handoff_status ON handoff (status, updated_seconds DESC, updated_nanos DESC, revision DESC, id);

CREATE INDEX handoff_deadline ON handoff (expires_seconds, expires_nanos);

CREATE INDEX handoff_trigrams ON handoff USING gin (trigrams);

-- How many packs end in each 4096 seconds, so that nobody counts them one by one.
CREATE TABLE handoff_tally (
  span bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  packs bigint NOT NULL,
  PRIMARY KEY (span, status)
);

CREATE FUNCTION tally_handoff() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO handoff_tally VALUES (NEW.expires_seconds >> 12, NEW.status, 1)
    ON CONFLICT (span, status) DO UPDATE SET packs = handoff_tally.packs + 1;
  ELSE
    UPDATE handoff_tally SET packs = packs - 1 WHERE span = OLD.expires_seconds >> 12 AND status = OLD.status;
    DELETE FROM handoff_tally WHERE span = OLD.expires_seconds >> 12 AND status = OLD.status AND packs = 0;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER handoff_tallied AFTER INSERT OR DELETE ON handoff
FOR EACH ROW EXECUTE FUNCTION tally_handoff();

INSERT INTO catalog_table VALUES
  ('pending', 'truth', 'Small objects that wait to become files; a row goes when its file is durable.'),
  ('handoff', 'index', 'The list of handoff packs: the newest revision of each, and what its texts are found by.'),
  ('handoff_tally', 'index', 'How many handoff packs end when, kept by triggers.');
