#!/usr/bin/env bash
# Records a server between clients and a back end, and judges what `luc fleet explain` says of its calls. The arguments are
# the server's command line, where PORT and BACK_END stand for ports. LUC and SELF are programs, WORK a folder; SEED and
# CLIENTS are of the load, OPTIONS of `luc record`; SPANS is the file of spans that the server writes, if it does.
set -euo pipefail

read -ra options <<<"${OPTIONS:-}"
started=() pid=
# Starts a program that must not outlive this script.
start() {
	setpriv --pdeathsig TERM -- "$@" >>"$WORK/pool.log" 2>&1 &
	started+=("$!")
}
# Ends what was started last, and returns its status.
end() {
	local last=${started[-1]}
	unset 'started[-1]'
	kill "$last"
	wait "$last"
}
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; wait' EXIT
trap 'exit 143' INT TERM

listens() {
	(: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
free_port() {
	local port=$((20000 + RANDOM % 12000))
	while listens "$port"; do port=$((port + 1)); done
	echo "$port"
}
await() {
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		if "$@"; then return; fi
		kill -0 "${started[-1]}" || break
		sleep 0.1
	done
	echo "$0: not so after a minute: $*" >&2
	tail -n 5 "$WORK/pool.log" >&2
	return 1
}
has_files() {
	[[ -n $(ls -A "$1" 2>/dev/null) ]]
}

cd "$WORK"
rm -rf trace calls.json asked.json pool.log ${SPANS:+"$SPANS"}
export SPANS
back_end=$(free_port)
start "$SELF" back-end "$back_end" "$SEED" calls.json
await listens "$back_end"
port=$(free_port)
server=("${@//BACK_END/$back_end}")
start "${server[@]//PORT/$port}"
await listens "$port"
start "$LUC" record --fleet --no-calls --quiet --out trace "${options[@]}"
await has_files trace
sleep 2
"$SELF" pool-clients "$port" "$SEED" "$CLIENTS" "${options[@]}" >asked.json
# 1 says that events were lost, which the trace says, too.
end || [ $? = 1 ]
# Signals end both well.
end || [ $? = 143 ]
end
"$LUC" fleet explain --json --rows ${SPANS:+--spans "$SPANS"} trace >answer.json
exec "$SELF" judge-pool asked.json calls.json answer.json ${SPANS:+"$SPANS"}
