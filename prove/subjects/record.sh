#!/usr/bin/env bash
# Records beside a run into folder $2: says `begun` and the recorder's process once there is a file, and ends by SIGINT.
# $1 is luc, the rest are options of `luc record`; WARMUP are seconds in which the BPF programs begin to see system calls.
set -uo pipefail

luc=$1 trace=$2
shift 2
"$luc" record --quiet --out "$trace" "$@" &
recorder=$!
trap 'kill "$recorder" 2>/dev/null' INT TERM EXIT
until [ -n "$(ls -A "$trace" 2>/dev/null)" ]; do
	kill -0 "$recorder" || exit 2
	sleep 0.01
done
sleep "${WARMUP:-0}"
echo "begun $recorder"
status=0
while kill -0 "$recorder" 2>/dev/null; do
	wait "$recorder"
	status=$?
done
# 1 says that events were lost, which the trace says, too.
[ $status -le 1 ]
