-- Index: the list of execution packs, and the text in them.

CREATE TABLE pack (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest text COLLATE "C" NOT NULL UNIQUE CHECK (length(digest) = 64),
  created_seconds bigint NOT NULL,
  created_nanos bigint NOT NULL,
  packed_seconds bigint NOT NULL,
  packed_nanos bigint NOT NULL,
  model text NOT NULL,
  steps bigint NOT NULL,
  parent text COLLATE "C" NOT NULL,
  problem text NOT NULL
);

CREATE INDEX pack_newest ON pack (
  created_seconds DESC, created_nanos DESC, packed_seconds DESC, packed_nanos DESC, digest
);

CREATE INDEX pack_parent ON pack (parent) WHERE parent <> '';

-- Names of tools come from outside and may be longer than an ordered index takes.
CREATE TABLE pack_tool (
  number bigint NOT NULL REFERENCES pack (number) ON DELETE CASCADE,
  tool text COLLATE "C" NOT NULL
);

CREATE INDEX pack_tool_name ON pack_tool USING hash (tool);

CREATE INDEX pack_tool_number ON pack_tool (number);

CREATE TABLE text_part (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  number bigint NOT NULL REFERENCES pack (number) ON DELETE CASCADE,
  part text NOT NULL,
  body text NOT NULL,
  lexemes tsvector NOT NULL
);

CREATE INDEX text_part_number ON text_part (number);

CREATE INDEX text_part_lexemes ON text_part USING gin (lexemes);

INSERT INTO catalog_table VALUES
  ('pack', 'index', 'The list of execution packs.'),
  ('pack_tool', 'index', 'Which tools the steps of a pack used.'),
  ('text_part', 'index', 'The full-text index, in pieces of at most 16 KiB: which pack, which part, which words.');
