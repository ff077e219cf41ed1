#!/usr/bin/env bash
# MariaDB: small transactions of eight clients, in one server or (SERVICE_INSTANCES=8) in a server
# for each client. The log is written through at each commit, as MariaDB does by default.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
instances=${SERVICE_INSTANCES:-1}
transactions=${SERVICE_WORK:-150}

# The server's options, from no file of the system's. Only names and sizes are set: a log of 8 MiB in
# place of 96 MiB makes eight servers fit on the disk.
options() {
	printf '%s\n' --no-defaults --user=root --datadir="$folder/$1" --innodb-log-file-size=8M
}

server() {
	local words
	mapfile -t words < <(options "$1")
	serve "$1" mariadbd "${words[@]}" --socket="$folder/$1.sock" --skip-networking \
		--innodb-flush-log-at-trx-commit=1 --innodb-buffer-pool-size=32M --log-error="$folder/$1.log"
}

ask() {
	mariadb --no-defaults --user=root --socket="$folder/$1.sock" --batch --execute="$2"
}

insert() {
	local instance=$(($1 <= instances ? $1 : 1)) n
	for ((n = 0; n < transactions; n++)); do
		echo "INSERT INTO t.log (client, said) VALUES ($1, 'entry $n of a log');"
	done | mariadb --no-defaults --user=root --socket="$folder/$instance.sock" --batch
}

case $goal in
prepare)
	mapfile -t words < <(options 1)
	mariadb-install-db "${words[@]}" --skip-test-db --auth-root-authentication-method=socket >/dev/null
	for ((number = 2; number <= instances; number++)); do
		cp -a "$folder/1" "$folder/$number"
	done
	;;
run)
	rm -f "$folder"/*.log
	for ((number = 1; number <= instances; number++)); do server "$number"; done
	for ((number = 1; number <= instances; number++)); do
		await mariadb-admin --no-defaults --user=root --socket="$folder/$number.sock" ping
		ask "$number" 'CREATE DATABASE IF NOT EXISTS t; DROP TABLE IF EXISTS t.log;
			CREATE TABLE t.log (id INT PRIMARY KEY AUTO_INCREMENT, client INT, said TEXT)'
	done
	drive insert
	rows=0
	for ((number = 1; number <= instances; number++)); do
		rows=$((rows + $(ask "$number" 'SELECT count(*) FROM t.log' | tail -n 1)))
	done
	stop_all
	no_errors '\[ERROR\]' "$folder"/*.log
	if ((rows != clients * transactions)); then
		echo "$0: $rows rows" >&2
		exit 1
	fi
	;;
esac
