#!/usr/bin/env bash
# Tries disks with flushes of several times, and prints the one on which program $2 appends and fsyncs closest to 1000
# records a second. $1 is luc, $3 a folder to mount in, the rest are words of `luc disk create`.
set -euo pipefail

luc=$1 program=$2 folder=$3
shift 3
name=evaluate-tried-$$
trap '"$luc" disk remove "$name" >/dev/null 2>&1 || true' EXIT
mkdir -p "$folder"
tried=()
for flush in 150us 200us 250us 300us 350us; do
	"$luc" disk create "$name" --model fixed --flush $flush --write 20us --read 20us "$@" --mount "$folder" >/dev/null
	tried+=("$flush $(cd "$folder" && "$program" append 1 1)")
	"$luc" disk remove "$name" >/dev/null
done
printf '%s\n' "${tried[@]}" | awk '
	{
		distance = log($2 / 1000) ^ 2
		if (NR == 1 || distance < closest) { closest = distance; flush = $1 }
		tried = tried (NR > 1 ? ", " : "") "{\"flush\": \"" $1 "\", \"per_s\": " $2 "}"
	}
	END { printf "{\"flush\": \"%s\", \"tried\": [%s]}\n", flush, tried }'
