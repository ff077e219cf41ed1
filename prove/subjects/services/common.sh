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

# Starts a program in the background that must not outlive this script, not even if that is killed. In a session of its own
# a signal to all of an interrupted evaluation does not reach it: `stop_all` ends it and waits for that.
start() {
	setpriv --pdeathsig TERM -- setsid "$@" &
	started+=("$!")
}

# Starts program $2 and its arguments as instance $1 of the service: alone, or as a user would with luc, if SERVICE_REACH
# says how (library, notify or auto). The report is FOLDER/luc-$1.json then.
serve() {
	local under=()
	if [[ -n ${SERVICE_REACH:-} ]]; then
		under=("$SERVICE_LUC" run --quiet --reach "$SERVICE_REACH" --json "$folder/luc-$1.json" --)
	fi
	start "${under[@]}" "${@:2}"
}

# Whether somebody listens on TCP port $1.
listens() {
	: <"/dev/tcp/127.0.0.1/$1"
}

# Connects to TCP port $1: the descriptor is in `to`.
connect() {
	exec {to}<>"/dev/tcp/127.0.0.1/$1"
}

# Reads a line from the connection without its end into `line`; fails if it does not begin with $1.
expect() {
	IFS= read -r line <&"$to" || line=
	line=${line%$'\r'}
	if [[ $line != "$1"* ]]; then
		echo "$0: not '$1' but '$line'" >&2
		return 1
	fi
}

# Sends text $1 at once if it is below 4 KiB and ends with a line's end: what bash writes line by line would wait for the
# other side's delayed acknowledgements.
send() {
	printf '%s' "$1" >&"$to"
}

# Sends request $1 (POST, PUT) for path $2 with content $3, lines, by HTTP, and reads the answer, whose status must be $4: its
# content is in `answer`, the header `Location` in `location`. Go's small answers have their length in a header.
# shellcheck disable=SC2034 # for those who call
http() {
	local LC_ALL=C length=0
	send "$1 $2 HTTP/1.1"$'\r\nHost: localhost\r\nContent-Length: '"${#3}"$'\r\n\r\n'"$3"
	expect "HTTP/1.1 $4" || return 1
	while expect '' && [[ -n $line ]]; do
		case ${line,,} in
		content-length:*) length=${line#*: } ;;
		location:*) location=${line#*: } ;;
		esac
	done
	answer=
	if ((length)); then IFS= read -rN "$length" answer <&"$to"; fi
}

# Draws $2 think times of client $1 into `thinks`, s: exponential, with a mean of SERVICE_THINK_MS, the same in each run
# of a seed. Zeros without it.
draw_thinks() {
	mapfile -t thinks < <(awk -v mean="${SERVICE_THINK_MS:-0}" -v count="$2" -v seed="$((${SERVICE_SEED:-1} * 1000 + $1))" '
		BEGIN { srand(seed); while (count-- > 0) printf "%.6f\n", -log(1 - rand()) * mean / 1000 }')
	# A pipe into which nobody writes: what is read from it with a limit is a sleep without a process.
	exec {pause}<> <(:)
}

# Sleeps for the think time of request $1, from 0.
think() {
	if [[ -n ${SERVICE_THINK_MS:-} ]]; then read -rt "${thinks[$1]}" -u "$pause" || true; fi
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
# argument. The time that this takes is the run's figure, in FOLDER/phase, in microseconds.
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
	echo "$((${end/./} - ${begin/./}))" >"$folder/phase"
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
