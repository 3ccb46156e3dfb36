-- What lists and removals ask for by index; the journal alone says what holds. ending: empty while
-- the thread has no end; `unsuccessful`: the end may be a completion without success.
ALTER TABLE threads
    ADD COLUMN flow text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN ending text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN ended_ms bigint NOT NULL DEFAULT 0;

UPDATE threads SET
    flow = coalesce(substring(encode(substr(first.line, 1, 512), 'escape') FROM '"name":"([^"\\]*)"'), ''),
    ending = CASE
        WHEN last.word = 'completed' AND position('"success":false'::bytea IN last.line) > 0
        THEN 'unsuccessful' ELSE coalesce(last.word, '') END,
    ended_ms = CASE WHEN last.word IS NULL THEN 0 ELSE coalesce(last.at_ms, 0) END
FROM thread_lines AS first, (
    SELECT log, position, line,
        substring(encode(substr(line, 1, 40), 'escape') FROM '^\{"end":"([a-z]+)"') AS word,
        substring(
            encode(substr(line, greatest(1, octet_length(line) - 119)), 'escape')
            FROM ',"timestamp":([0-9]{1,18})(?:,"ranMs":[0-9]+)?,"chain":"[0-9A-Z]+"\}\s*$'
        )::bigint AS at_ms
    FROM thread_lines
) AS last
WHERE first.log = number AND first.position = 0 AND last.log = number AND last.position = lines - 1;

CREATE INDEX threads_of_flow ON threads (flow, place, name);
CREATE INDEX threads_by_ending ON threads (ending, place, name);
CREATE INDEX threads_by_end ON threads (ended_ms, name) WHERE ending <> '';

-- a blob is put before the line that names it: a young one is not removed
ALTER TABLE blobs ADD COLUMN put_at timestamptz NOT NULL DEFAULT now();

-- Ranges of threads, so that a range whose threads were all removed gives its space back.
ALTER TABLE thread_lines RENAME TO thread_lines_first;
ALTER INDEX thread_lines_pkey RENAME TO thread_lines_first_pkey;
CREATE TABLE thread_lines (
    log bigint NOT NULL,
    position integer NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (log, position)
) PARTITION BY RANGE (log);
DO $$
DECLARE
    size CONSTANT bigint := 100000;
    following CONSTANT bigint := (SELECT coalesce(max(number), 0) FROM threads) / size + 1;
BEGIN
    EXECUTE format(
        'ALTER TABLE thread_lines ATTACH PARTITION thread_lines_first FOR VALUES FROM (MINVALUE) TO (%s)',
        following * size
    );
    EXECUTE format(
        'CREATE TABLE thread_lines_%s PARTITION OF thread_lines FOR VALUES FROM (%s) TO (%s)',
        following, following * size, (following + 1) * size
    );
END $$;
-- for a range that nobody made in time, for lack of rights
CREATE TABLE thread_lines_rest PARTITION OF thread_lines DEFAULT;
