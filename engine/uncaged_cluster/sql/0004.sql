-- A pinned thread is removed by no age and by no name.
ALTER TABLE threads ADD COLUMN pinned boolean NOT NULL DEFAULT false;
CREATE INDEX threads_pinned ON threads (bundle, name) WHERE pinned;
