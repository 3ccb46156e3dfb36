#!/usr/bin/env bash
# solve-issue on two workers, of which the one that plays the coder is killed: the other one finishes, and the branch is in the repository.
# It starts a PostgreSQL of its own below a temporary directory, and ends all that it started.
# It needs Debian's package postgresql, the extra [cluster], and pytest beside the program.
# usage: examples/cluster/solve-issue.sh [PROGRAM]    PROGRAM: uncaged-workflow, or the path of one
set -euo pipefail
program=$(realpath -s "$(command -v "${1:-uncaged-workflow}")")
. "$(dirname "$(realpath "$0")")/postgres.sh"

say "a store with the shipped flows, and a repository with failing tests"
UNCAGED_WORKFLOW_HOME="$place/starter" env -u UNCAGED_WORKFLOW_STORE "$program" list >/dev/null
UNCAGED_WORKFLOW_HOME="$place/starter" "$program" store copy "$place/starter" "$UNCAGED_WORKFLOW_STORE"
env -u UNCAGED_WORKFLOW_STORE UNCAGED_WORKFLOW_HOME="$place/starter" "$program" demo "$place/demo-repo" >/dev/null

for name in first second; do
  mkdir "$place/$name"
  (cd "$place/$name" && UNCAGED_WORKFLOW_HOME="$place/$name/home" exec "$program" work --slots 1 >"$place/$name/log" 2>&1) &
  started+=($!)
done
say "two workers: processes ${started[*]}"

export UNCAGED_WORKFLOW_HOME="$place/starter"
say "run solve-issue, from a third process"
"$program" run solve-issue --workspace "$place/demo-repo" --prompt - <"$place/demo-repo/ISSUE.md" &
run=$!
started+=("$run")

# the worker of the coder: `ps` names host, process and session as HOST.PID#SESSION
worker=""
for _ in $(seq 600); do
  worker=$("$program" ps --json | python3 -c '
import json, sys
for one in json.load(sys.stdin):
    if "coder" in str(one.get("doing")) and one.get("worker"):
        print(one["worker"].rsplit("#", 1)[0].rsplit(".", 1)[1])
')
  [ -z "$worker" ] || break
  sleep 0.2
done
[ -n "$worker" ] || { echo "no coder was seen at work" >&2; exit 1; }
say "killed in the coder: the worker with the process id $worker"
kill -KILL "$worker"
wait "$worker" 2>/dev/null || true
wait "$run"

say "the thread, as the store has it"
"$program" thread latest
say "verify"
"$program" verify latest
say "the branch, and its tests"
branch=$(git -C "$place/demo-repo" for-each-ref --format='%(refname:short)' 'refs/heads/uncaged/')
git -C "$place/demo-repo" checkout -q "$branch"
git -C "$place/demo-repo" log --oneline -n 3
(cd "$place/demo-repo" && "$(dirname "$program")/python" -m pytest -q -p no:cacheprovider)
