#!/usr/bin/env bash
# etcd: eight servers, each a cluster of its own, with a client each that puts key after key (1 KiB) and waits for the
# answer to each.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
puts=${SERVICE_WORK:-150}
# In etcd's JSON keys and values are in base64; digits are.
printf -v value '%01368d' 0

server() {
	local client=http://127.0.0.1:$((23700 + $1)) peer=http://127.0.0.1:$((23800 + $1))
	serve "$1" etcd --name "s$1" --data-dir "$folder/$1" --initial-cluster "s$1=$peer" \
		--listen-client-urls "$client" --advertise-client-urls "$client" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" >"$folder/$1.log" 2>&1
}

# Counts all keys of server $1, into `count`.
count() {
	connect "$((23700 + $1))" && http POST /v3/kv/range $'{"key":"AA==","range_end":"AA==","count_only":true}\n' 200 || return 1
	exec {to}>&-
	count=0
	if [[ $answer =~ \"count\":\"([0-9]+)\" ]]; then count=${BASH_REMATCH[1]}; fi
}

put() {
	local number key
	draw_thinks "$1" "$puts"
	connect "$((23700 + $1))"
	for ((number = 0; number < puts; number++)); do
		think "$number"
		printf -v key '%08d' "$number"
		http POST /v3/kv/put "{\"key\":\"$key\",\"value\":\"$value\"}"$'\n' 200
	done
}

case $goal in
prepare) ;;
run)
	for ((number = 1; number <= clients; number++)); do rm -rf "${folder:?}/$number"; done
	for ((number = 1; number <= clients; number++)); do server "$number"; done
	for ((number = 1; number <= clients; number++)); do await count "$number"; done
	drive put
	for ((number = 1; number <= clients; number++)); do
		count "$number"
		if ((count != puts)); then
			echo "$0: server $number has $count keys" >&2
			exit 1
		fi
	done
	stop_all
	no_errors ' [EC] \| |"level":"(error|fatal|panic)"' "$folder"/*.log
	;;
esac
