#!/usr/bin/env bash
# Runs all tests, and says which were skipped and why. Those of luc-fleet-sql and luc-fleet-store have a profile of their
# own: what they link takes long to compile with optimization.
#
# usage: test.sh [sql]    only those of luc-fleet-sql and luc-fleet-store
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
LUC_SKIPPED=$(mktemp)
export LUC_SKIPPED
trap 'rm -f "$LUC_SKIPPED"' EXIT

status=0
if [[ ${1:-} != sql ]]; then
	scripts/cargo.sh test --release --workspace --exclude luc-fleet-sql --exclude luc-fleet-store --locked --no-fail-fast || status=$?
fi
scripts/cargo.sh test --profile sql-test -p luc-fleet-sql -p luc-fleet-store --locked --no-fail-fast || status=$?
count=$(wc -l <"$LUC_SKIPPED")
echo "skipped tests: $count"
sort "$LUC_SKIPPED"
exit "$status"
