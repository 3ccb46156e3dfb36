# A PostgreSQL of its own below a temporary directory, for the scripts beside this one, which source it. It sets `place`, the directory, and names the store.
# What they add to `started` is killed at their end, and the server stopped.
place=$(mktemp -d)
started=()
end() {
  for one in "${started[@]}"; do kill -KILL "$one" 2>/dev/null || true; done
  [ -z "${server:-}" ] || as_server "$bin/pg_ctl" -D "$place/database" -m immediate -s stop || true
  rm -rf "$place"
}
trap end EXIT
say() { printf '\n== %s\n' "$*"; }

say "PostgreSQL, at a socket in $place"
bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)")
as_server() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
mkdir "$place/database"
if [ "$(id -u)" = 0 ]; then chmod 755 "$place"; chown 65534:65534 "$place/database"; fi
cd "$place"
as_server "$bin/initdb" -D "$place/database" -U postgres -A trust >/dev/null
as_server "$bin/pg_ctl" -D "$place/database" -s -w -l "$place/database/log" \
  -o "-c listen_addresses= -c unix_socket_directories=$place/database" start
server=1
export UNCAGED_WORKFLOW_STORE="postgresql://postgres@/postgres?host=$place/database&schema=team"
