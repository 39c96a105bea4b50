-- Index: the list of execution packs, and the text in them.

CREATE TABLE pack (
  number INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
  created_seconds INTEGER NOT NULL,
  created_nanos INTEGER NOT NULL,
  packed_seconds INTEGER NOT NULL,
  packed_nanos INTEGER NOT NULL,
  model TEXT NOT NULL,
  steps INTEGER NOT NULL,
  parent TEXT NOT NULL,
  problem TEXT NOT NULL
) STRICT;

CREATE INDEX pack_newest ON pack (
  created_seconds DESC, created_nanos DESC, packed_seconds DESC, packed_nanos DESC, digest
);

CREATE INDEX pack_parent ON pack (parent) WHERE parent <> '';

CREATE TABLE pack_tool (
  tool TEXT NOT NULL,
  number INTEGER NOT NULL REFERENCES pack (number) ON DELETE CASCADE,
  PRIMARY KEY (tool, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX pack_tool_number ON pack_tool (number, tool);

CREATE TABLE text_part (
  id INTEGER PRIMARY KEY,
  number INTEGER NOT NULL REFERENCES pack (number) ON DELETE CASCADE,
  part TEXT NOT NULL
) STRICT;

CREATE INDEX text_part_number ON text_part (number);

-- No trigger keeps it in step with text_part: the schema is not trusted, so it may not touch a virtual table.
CREATE VIRTUAL TABLE words USING fts5(body, tokenize = "unicode61 remove_diacritics 2 tokenchars '_'");

-- What an earlier schema indexed is not in the list yet: look at all entries again.
DELETE FROM mark;

INSERT INTO catalog_table VALUES
  ('pack', 'index', 'The list of execution packs.'),
  ('pack_tool', 'index', 'Which tools the steps of a pack used.'),
  ('text_part', 'index', 'Where each indexed text stands: which pack, which part.'),
  ('words', 'index', 'The full-text index, in pieces of at most 16 KiB.');
