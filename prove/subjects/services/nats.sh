#!/usr/bin/env bash
# NATS with JetStream: one server, eight publishers, each with a stream of its own in files, that wait for the
# acknowledgement of each message of 1 KiB.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
messages=${SERVICE_WORK:-1000}
port=24222
printf -v payload '%01024d' 0

# Connects and listens for answers to $1.
enter() {
	connect "$port"
	expect 'INFO '
	send $'CONNECT {"verbose":false}\r\nSUB '"$1"$' 1\r\n'
}

# Publishes content $2 on subject $1, and waits for the answer: its content is in `line`.
ask() {
	send "PUB $1 $inbox ${#2}"$'\r\n'"$2"$'\r\n'
	while expect ''; do
		case $line in
		PING*) send $'PONG\r\n' ;;
		MSG*) break ;;
		*) return 1 ;;
		esac
	done
	expect '{'
}

publish() {
	local number inbox=_INBOX.$1
	draw_thinks "$1" "$messages"
	enter "$inbox"
	ask "\$JS.API.STREAM.CREATE.S$1" "{\"name\":\"S$1\",\"subjects\":[\"s$1\"],\"storage\":\"file\"}"
	for ((number = 1; number <= messages; number++)); do
		think "$((number - 1))"
		ask "s$1" "$payload"
		if [[ $line != *"\"seq\":$number}"* ]]; then
			echo "$0: message $number: $line" >&2
			return 1
		fi
	done
	ask "\$JS.API.STREAM.INFO.S$1" ''
	if [[ $line != *"\"messages\":$messages,"* ]]; then
		echo "$0: stream $1: $line" >&2
		return 1
	fi
}

case $goal in
prepare) ;;
run)
	rm -rf "$folder/data"
	serve 1 nats-server --addr 127.0.0.1 --port "$port" --jetstream --store_dir "$folder/data" --log "$folder/log"
	await listens "$port"
	drive publish
	stop_all
	no_errors '\[(ERR|FTL)\]' "$folder/log"
	;;
esac
