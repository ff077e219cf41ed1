#!/usr/bin/env bash
# How many requests a client of Redis makes in $1 s. The rest is its command line, where REQUESTS stands for their number.
set -euo pipefail

seconds=$1 requests=20000
shift
# The second run is long enough to tell.
for wanted in 1 "$seconds"; do
	rate=$("${@//REQUESTS/$requests}" | tail -n 1 | cut -d , -f 2 | tr -d '"')
	requests=$(awk -v rate="$rate" -v wanted="$wanted" 'BEGIN { printf "%d", rate * wanted < 1 ? 1 : rate * wanted }')
done
echo "$requests"
