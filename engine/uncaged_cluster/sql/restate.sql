-- Turns of threads that Restate runs, with the columns of DBOS's table that the queue reads.
CREATE TABLE turns (
    workflow_uuid text PRIMARY KEY,
    bundle text NOT NULL,
    thread text NOT NULL,
    from_line bigint NOT NULL,
    status text NOT NULL,
    queue_name text NOT NULL,
    queue_partition_key text NOT NULL,
    priority integer NOT NULL,
    application_version text NOT NULL,
    executor_id text,
    takes integer NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    ended_at bigint
);
CREATE INDEX turns_dequeue ON turns
    (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
    WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
CREATE INDEX turns_created ON turns (created_at);
CREATE INDEX turns_ended ON turns (ended_at) WHERE ended_at IS NOT NULL;

-- The server; name: of this store there.
CREATE TABLE server (
    name text NOT NULL,
    admin text NOT NULL,
    ingress text NOT NULL
);

-- What workers have registered there, by the numbers of their sessions.
CREATE TABLE deployments (
    number bigint PRIMARY KEY,
    deployment text NOT NULL
);
