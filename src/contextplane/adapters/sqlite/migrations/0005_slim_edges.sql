-- Index: edges name their source by a number, and what they point at is found by its first digits. Very many edges of
-- one source then lie together, and each takes a quarter of the room.

CREATE TABLE source (
  number INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64)
) STRICT;

CREATE TABLE slim_edge (
  source INTEGER NOT NULL REFERENCES source (number) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (length(role) BETWEEN 1 AND 256),
  target TEXT NOT NULL CHECK (length(target) = 64),
  PRIMARY KEY (source, position)
) STRICT, WITHOUT ROWID;

INSERT INTO source (digest) SELECT DISTINCT source FROM edge ORDER BY source;

INSERT INTO slim_edge
  SELECT source.number, edge.position, edge.role, edge.target FROM edge JOIN source ON source.digest = edge.source;

DROP TABLE edge;

ALTER TABLE slim_edge RENAME TO edge;

CREATE INDEX edge_target ON edge (substr(target, 1, 12));

INSERT INTO catalog_table VALUES ('source', 'index', 'The objects that refer to others, numbered.');
