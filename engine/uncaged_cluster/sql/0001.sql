-- Texts are bytea: a store's bytes are exact, and PostgreSQL's text has no NUL.
-- No foreign keys to threads and conversations: each line is written by a statement that updates the
-- head first, and a partition of old lines can be detached.

CREATE SEQUENCE session_numbers;
CREATE SEQUENCE start_order MINVALUE 0 START 0;
CREATE SEQUENCE document_versions;

CREATE TABLE bundles (
    hash text COLLATE "C" PRIMARY KEY CHECK (hash ~ '^[0-9A-HJKMNP-TV-Z]{13}$'),
    source bytea NOT NULL
);

CREATE TABLE blobs (
    name text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[0-9a-f]{32}$'),
    content bytea NOT NULL
);

-- also the registry, under its file's name
CREATE TABLE documents (
    name text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL,
    version bigint NOT NULL DEFAULT nextval('document_versions')
);

CREATE TABLE threads (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE CHECK (name ~ '^[0-9A-HJKMNP-TV-Z]{26}$'),
    bundle text COLLATE "C" NOT NULL CHECK (bundle ~ '^[0-9A-HJKMNP-TV-Z]{13}$'),
    place bigint NOT NULL,
    by_thread boolean NOT NULL,
    archived boolean NOT NULL,
    lines integer NOT NULL DEFAULT 0,
    size_bytes bigint NOT NULL DEFAULT 0,
    digest bytea NOT NULL CHECK (octet_length(digest) = 12),
    fence bigint NOT NULL DEFAULT 0,
    owner bigint
) WITH (fillfactor = 70); -- room for new versions of a head in its page: no index has what an append changes
CREATE INDEX threads_in_order ON threads (place, name);

-- keyed by the thread's number, which grows with time: ranges of it can become partitions
CREATE TABLE thread_lines (
    log bigint NOT NULL,
    position integer NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (log, position)
);

CREATE TABLE thread_notes (
    thread bigint PRIMARY KEY,
    info bytea NOT NULL,
    origin bytea
);

CREATE TABLE removed_threads (
    bundle text COLLATE "C" CHECK (bundle ~ '^[0-9A-HJKMNP-TV-Z]{13}$'),
    name text COLLATE "C" CHECK (name ~ '^[0-9A-HJKMNP-TV-Z]{26}$'),
    PRIMARY KEY (bundle, name)
);

-- to the worker that drives the thread, which deletes what it has carried out
CREATE TABLE requests (
    thread text COLLATE "C" PRIMARY KEY CHECK (thread ~ '^[0-9A-HJKMNP-TV-Z]{26}$'),
    event text NOT NULL CHECK (event IN ('pause', 'kill'))
);

CREATE TABLE conversations (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE CHECK (name ~ '^[0-9A-HJKMNP-TV-Z]{26}$'),
    lines integer NOT NULL DEFAULT 0,
    size_bytes bigint NOT NULL DEFAULT 0,
    digest bytea NOT NULL CHECK (octet_length(digest) = 12),
    fence bigint NOT NULL DEFAULT 0,
    owner bigint
) WITH (fillfactor = 70);

CREATE TABLE conversation_lines (
    log bigint NOT NULL,
    position integer NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (log, position)
);
