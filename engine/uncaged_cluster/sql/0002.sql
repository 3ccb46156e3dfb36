-- the living workers, and those that died until another one notices
CREATE TABLE workers (
    number bigint PRIMARY KEY, -- of its session
    name text NOT NULL,
    engine text NOT NULL,
    protocol text NOT NULL,
    slots integer NOT NULL,
    agents integer NOT NULL DEFAULT 0, -- that work in it now
    offers text[] NOT NULL,
    flows text[], -- NULL: all
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    drains boolean NOT NULL DEFAULT false
);

-- beginnings of threads whose flow has a rate
CREATE TABLE begun_threads (
    workflow text COLLATE "C" PRIMARY KEY,
    flow text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX begun_threads_of_flow ON begun_threads (flow, at);
