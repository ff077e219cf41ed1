#!/usr/bin/env bash
# Redis with `appendfsync always`: eight servers with a client each, which sets key after key and waits for the answer to
# each.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
sets=${SERVICE_WORK:-150}
printf -v value '%0100d' 0

server() {
	mkdir -p "$folder/$1"
	serve "$1" redis-server --port "$((26300 + $1))" --bind 127.0.0.1 --dir "$folder/$1" --appendonly yes \
		--appendfsync always --logfile "$folder/$1.log"
}

answers() {
	connect "$((26300 + $1))" && send $'PING\r\n' && expect +PONG && exec {to}>&-
}

set_keys() {
	local number
	draw_thinks "$1" "$sets"
	connect "$((26300 + $1))"
	for ((number = 0; number < sets; number++)); do
		think "$number"
		send "SET key:$number $value"$'\r\n'
		expect +OK
	done
}

case $goal in
prepare) ;;
run)
	rm -f "$folder"/*.log
	for ((number = 1; number <= clients; number++)); do rm -rf "${folder:?}/$number"; done
	for ((number = 1; number <= clients; number++)); do server "$number"; done
	for ((number = 1; number <= clients; number++)); do await answers "$number"; done
	drive set_keys
	for ((number = 1; number <= clients; number++)); do
		connect "$((26300 + number))"
		send $'DBSIZE\r\n'
		expect ":$sets"
		exec {to}>&-
	done
	stop_all
	no_errors ' # [^W].*([Ee]rror|[Ff]ail|BUG|crash)' "$folder"/*.log
	;;
esac
