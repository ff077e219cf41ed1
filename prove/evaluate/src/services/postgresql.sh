#!/usr/bin/env bash
# PostgreSQL: eight servers with a client each, every insert a transaction. (Eight clients of one
# server write one log, whose writer brings them together already.)
# shellcheck source=prove/evaluate/src/services/common.sh
source "$(dirname "$0")/common.sh"
transactions=${SERVICE_WORK:-150}
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)

server() {
	start "$bin/postgres" -D "$folder/$1" -k "$folder" -p "$((5500 + $1))" -c listen_addresses= \
		2>"$folder/$1.log"
}

ask() {
	psql --no-psqlrc --quiet --no-align --tuples-only --host="$folder" --port="$((5500 + $1))" \
		--dbname=postgres --username="$(id -un)" --set=ON_ERROR_STOP=1
}

insert() {
	local n
	for ((n = 0; n < transactions; n++)); do
		echo "INSERT INTO log (said) VALUES ('entry $n of a log');"
	done | ask "$1"
}

ready() {
	ask "$1" <<<'SELECT 1'
}

case $goal in
prepare)
	# Segments of 1 MiB in place of 16 MiB make eight servers fit on the disk.
	"$bin/initdb" --no-sync --auth=trust --wal-segsize=1 -D "$folder/1" >/dev/null
	for ((number = 2; number <= clients; number++)); do
		cp -a "$folder/1" "$folder/$number"
	done
	;;
run)
	rm -f "$folder"/*.log
	for ((number = 1; number <= clients; number++)); do server "$number"; done
	for ((number = 1; number <= clients; number++)); do
		await ready "$number"
		ask "$number" <<<'DROP TABLE IF EXISTS log; CREATE TABLE log (id serial PRIMARY KEY, said text);' \
			2>/dev/null
	done
	drive insert
	for ((number = 1; number <= clients; number++)); do
		rows=$(ask "$number" <<<'SELECT count(*) FROM log')
		if ((rows != transactions)); then
			echo "$0: $rows rows in server $number" >&2
			exit 1
		fi
	done
	stop_all
	no_errors '(ERROR|PANIC):' "$folder"/*.log
	;;
esac
