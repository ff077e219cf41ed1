#!/usr/bin/env bash
# PostgreSQL as Debian's unit starts it, by pg_ctlcluster, which gives it an environment of its own: eight servers with a
# client each, every insert a transaction. (Eight clients of one server write one log, whose writer brings them together
# already.)
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
transactions=${SERVICE_WORK:-150}
version=$(printf '%s\n' /usr/lib/postgresql/* | sort -V | tail -n 1)
version=${version##*/}
# Clusters of its own, not the machine's.
export PG_CLUSTER_CONF_ROOT=$folder/clusters

server() {
	serve "$1" pg_ctlcluster --foreground "$version" "c$1" start 2>"$folder/$1.log"
}

ask() {
	psql --no-psqlrc --quiet --no-align --tuples-only --host="$folder" --port="$((5500 + $1))" \
		--dbname=postgres --username=postgres --set=ON_ERROR_STOP=1
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
	chown postgres: "$folder"
	# Segments of 1 MiB in place of 16 MiB make eight servers fit on the disk.
	pg_createcluster --datadir="$folder/c1" --port=5501 --socketdir="$folder" --logfile="$folder/c1.log" \
		"$version" c1 -- --no-sync --auth=trust --wal-segsize=1 >/dev/null
	for ((number = 2; number <= clients; number++)); do
		cp -a "$folder/c1" "$folder/c$number"
		cp -a "$folder/clusters/$version/c1" "$folder/clusters/$version/c$number"
		sed -i "s/\bc1\b/c$number/g; s/^port = .*/port = $((5500 + number))/" \
			"$folder/clusters/$version/c$number/postgresql.conf"
	done
	;;
run)
	# That of the clusters' own, c1.log, is for what is not in the foreground, but has to be there.
	rm -f "$folder"/[0-9].log
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
	no_errors '(ERROR|PANIC):' "$folder"/[0-9].log
	;;
esac
