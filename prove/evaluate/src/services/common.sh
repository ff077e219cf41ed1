# What the scripts of the services share. Each is called as `SERVICE.sh FOLDER prepare`, which makes
# what all runs use, and as `SERVICE.sh FOLDER run`, which starts the service, drives its clients for
# a fixed amount of work, stops it, and ends with status 1 if a log has an error.
# shellcheck shell=bash
set -euo pipefail

folder=$1
# What the script that sources this one is to do.
# shellcheck disable=SC2034
goal=$2
clients=8
started=()

# Sends SIGTERM to what `start` has started and waits for its end.
stop_all() {
	local pid
	for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
	started=()
}
trap stop_all EXIT
# Bash waits for what runs in the foreground first, so that nothing is left of it.
trap 'exit 143' INT TERM

# Starts a program in the background that must not outlive this script.
start() {
	"$@" &
	started+=("$!")
}

# Waits at most a minute until the command given succeeds.
await() {
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	echo "$0: not ready after a minute: $*" >&2
	return 1
}

# Runs the function given once for each client, all at the same time, with the client's number as its
# argument. The time that this takes is the run's figure: a line of FOLDER/phases, in microseconds.
drive() {
	local pids=() pid number failed=0 services=("${started[@]}")
	local begin=$EPOCHREALTIME
	for ((number = 1; number <= clients; number++)); do
		"$1" "$number" &
		pids+=("$!")
		started+=("$!")
	done
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	started=("${services[@]}")
	local end=$EPOCHREALTIME
	echo "$((${end/./} - ${begin/./}))" >>"$folder/phases"
	if ((failed)); then
		echo "$0: a client failed" >&2
		return 1
	fi
}

# Ends with status 1 if a line of the logs given looks like this.
no_errors() {
	local pattern=$1
	shift
	if grep -HE "$pattern" "$@" >&2; then
		echo "$0: the log has errors" >&2
		return 1
	fi
}
