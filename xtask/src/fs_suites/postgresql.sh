#!/usr/bin/env bash
# A database of PostgreSQL that is killed again and again under load has all that it said was
# committed, and its pages and indexes are whole.
# Usage: postgresql.sh DATABASE BESIDE KILLS: a new directory on the file system that is tested, a new
# one on another, and how often to kill.
set -euo pipefail
database=$1 beside=$2 kills=$3
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
[ -n "$programs" ] && PATH=$programs:$PATH
mkdir "$database" "$beside"
as=()
if [ "$(id -u)" = 0 ]; then
    # It refuses to run as root.
    chown nobody:nogroup "$database" "$beside"
    as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
export PGHOST=$beside PGDATABASE=postgres PGUSER=tester
cd "$beside"

start() {
    "${as[@]}" pg_ctl --silent --wait --timeout=120 --pgdata="$database" --log="$beside/log" \
        --options="-c listen_addresses='' -c unix_socket_directories='$beside' -c fsync=on" start \
        >"$beside/started" 2>&1 || { cat "$beside/started"; tail "$beside/log"; exit 1; }
}

# Every process of the server at once, none of which may do anything any more.
end() {
    local server all
    server=$(head -1 "$database/postmaster.pid")
    kill -STOP "$server"
    all="$server $(pgrep -P "$server" | tr '\n' ' ')"
    kill -KILL $all
    while kill -0 $all 2>/dev/null; do sleep 0.01; done
}

bare_psql() { psql --no-psqlrc --quiet --tuples-only --no-align "$@"; }

# Writes down what it was told is committed, one number after the other.
client() {
    seq "$2" $(($2 + 99999)) | sed "s/.*/insert into told values ($1, &) returning n;/" |
        bare_psql >>"$beside/told-$1" 2>/dev/null || true
}

query() { bare_psql --command "$1"; }

check() {
    for number in 1 2 3; do
        query "select n from told where client = $number" | sort >"$beside/there"
        sort "$beside/told-$number" >"$beside/said"
        if ! lost=$(comm -13 "$beside/there" "$beside/said") || [ -n "$lost" ]; then
            echo "client $number was told of what is not there: $lost"
            exit 1
        fi
    done
    # What pgbench moves from place to place comes to the same everywhere.
    sums=$(query "select (select sum(abalance) from pgbench_accounts) = all (array[
        (select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers),
        coalesce((select sum(delta) from pgbench_history), 0)])")
    [ "$sums" = t ] || { echo "the sums of pgbench differ"; exit 1; }
}

"${as[@]}" initdb --pgdata="$database" --username=tester --auth=trust --data-checksums >"$beside/initdb"
start
query "create table told (client int, n int, primary key (client, n))"
pgbench --initialize --quiet --scale=2 2>/dev/null
touch "$beside/told-1" "$beside/told-2" "$beside/told-3"
for ((kill = 1; kill <= kills; kill++)); do
    for number in 1 2 3; do client $number $((kill * 100000)) & done
    pgbench --no-vacuum --client=4 --time=60 >/dev/null 2>&1 &
    sleep "$((RANDOM % 2)).$((5 + RANDOM % 5))"
    end
    wait
    start
    check
done
query "create extension amcheck"
query "select bt_index_check(index => indexrelid, heapallindexed => true) from pg_index
    join pg_class on pg_class.oid = indexrelid where relam = 403" >/dev/null
"${as[@]}" pg_ctl --silent --wait --pgdata="$database" --mode=fast stop
"${as[@]}" pg_checksums --check --pgdata="$database" >/dev/null
echo "killed $kills times: $(cat "$beside"/told-* | wc -l) rows that clients were told of are there"
