#!/usr/bin/env bash
# A rolling upgrade: workers are replaced while threads run, first by an engine with the same version of journals, then by one with another version.
# Without NEW, the second engine is a copy of the package uncaged_cluster with a changed constant PROTOCOL.
# It starts a PostgreSQL of its own below a temporary directory, and ends all that it started. It needs Debian's package postgresql and the extra [cluster].
# usage: examples/cluster/rolling-upgrade.sh [OLD [NEW]]    OLD, NEW: uncaged-workflow, or the path of one
set -euo pipefail
old=$(realpath -s "$(command -v "${1:-uncaged-workflow}")")
. "$(dirname "$(realpath "$0")")/postgres.sh"

say "the second engine"
if [ -n "${2:-}" ]; then
  new=$(realpath -s "$(command -v "$2")")
else
  python="$(dirname "$old")/python"
  mkdir "$place/other"
  cp -r "$("$python" -c 'import os, uncaged_cluster as found; print(os.path.dirname(found.__file__))')" "$place/other/"
  sed -i 's/^PROTOCOL = .*/PROTOCOL = "uncaged-workflow-other"/' "$place/other/uncaged_cluster/workers.py"
  new="$place/new"
  printf '#!/bin/sh\nPYTHONPATH=%s exec %s -m uncaged_cli "$@"\n' "$place/other" "$python" >"$new"
  chmod +x "$new"
fi
echo "$old, then $new"

say "a store with a flow of forty steps, a second each"
cat >"$place/steps.py" <<'FLOW'
descriptor = {
    "contract": 1,
    "name": "steps",
    "description": "Sleeps forty times.",
    "kind": "task",
    "parameters": {},
    "policy": {"sleep": {}, "now": {}},
}


def run(input, options):
    for _ in range(40):
        yield {"now": {}}
        yield {"sleep": {"seconds": 1}}
    return {"success": True, "message": "forty steps"}
FLOW
export UNCAGED_WORKFLOW_HOME="$place/person"
"$old" add steps "$place/steps.py" --accept >/dev/null

worker() { # NAME PROGRAM OPTION...: start a worker in the background
  mkdir -p "$place/$1"
  (cd "$place/$1" && UNCAGED_WORKFLOW_HOME="$place/$1/home" exec "$2" work "${@:3}" >"$place/$1/log" 2>&1) &
  last=$!
  started+=("$last")
}
threads=()
start() { threads+=("$("$1" run steps --detach)"); }
until_driven() { # NUMBER PROGRAM: wait until workers drive so many threads
  until [ "$("$2" ps --json | grep -oE '"worker": *"[^"]' | wc -l)" -ge "$1" ]; do sleep 0.2; done
}

say "two threads on an old worker, which drains when another one is there"
worker first "$old"
first=$last
start "$old"
start "$old"
until_driven 2 "$old"
worker second "$old"
"$old" work --drain "$("$old" queues --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["workers"][0]["worker"])')"
wait "$first"
echo "the first worker ended with the exit code 0; its threads go on:"
until_driven 2 "$old"
"$old" ps

say "a worker with another version of journals: it takes the threads that its own version starts"
worker third "$new"
third=$last
start "$new"
until_driven 3 "$old"
"$old" ps

say "all workers of the old version drain; their threads wait, and the new ones leave them alone"
"$old" work --drain "$("$old" queues --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["workers"][0]["worker"])')"
sleep 1
"$old" ps

say "an old worker, until its threads have ended"
worker fourth "$old" --until-idle
fourth=$last
wait "$fourth"
while "$old" ps --json | grep -q threadId; do sleep 0.5; done
"$old" threads
for thread in "${threads[@]}"; do "$old" verify "$thread"; done
say "the new worker drains, too"
"$new" work --drain --all
wait "$third"
