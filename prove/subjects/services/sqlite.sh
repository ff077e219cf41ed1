#!/usr/bin/env bash
# Eight sqlite3 processes, each with a database of its own; every insert is a transaction.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
inserts=${SERVICE_WORK:-150}

statements() {
	echo 'PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;'
	echo 'CREATE TABLE log (id INTEGER PRIMARY KEY, said TEXT);'
	local n
	for ((n = 0; n < inserts; n++)); do
		echo "INSERT INTO log (said) VALUES ('entry $n of a log');"
	done
}

insert() {
	serve "$1" sqlite3 -batch -bail "$folder/$1.db" ".read $folder/statements" >/dev/null
	wait "${started[-1]}"
}

case $goal in
prepare) statements >"$folder/statements" ;;
run)
	rm -f "$folder"/*.db
	drive insert
	for ((number = 1; number <= clients; number++)); do
		said=$(sqlite3 "$folder/$number.db" 'PRAGMA integrity_check; SELECT count(*) FROM log;')
		if [[ $said != "ok"$'\n'"$inserts" ]]; then
			echo "$0: database $number: $said" >&2
			exit 1
		fi
	done
	;;
esac
