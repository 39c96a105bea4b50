-- Index: edges name their source by a number, and what they point at is found by its first digits. Very many edges of
-- one source then lie together, and each takes a quarter of the room.

CREATE TABLE source (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest text COLLATE "C" NOT NULL UNIQUE CHECK (length(digest) = 64)
);

CREATE TABLE slim_edge (
  source bigint NOT NULL REFERENCES source (number) ON DELETE CASCADE,
  position bigint NOT NULL,
  role text COLLATE "C" NOT NULL CHECK (length(role) BETWEEN 1 AND 256),
  target text COLLATE "C" NOT NULL CHECK (length(target) = 64)
);

INSERT INTO source (digest) SELECT DISTINCT source FROM edge ORDER BY source;

INSERT INTO slim_edge
  SELECT source.number, edge.position, edge.role, edge.target FROM edge JOIN source ON source.digest = edge.source;

DROP TABLE edge;

ALTER TABLE slim_edge RENAME TO edge;

ALTER TABLE edge ADD PRIMARY KEY (source, position);

CREATE INDEX edge_target ON edge (substr(target, 1, 12));

INSERT INTO catalog_table VALUES ('source', 'index', 'The objects that refer to others, numbered.');
