#!/usr/bin/env bash
# Runs all tests, and says which were skipped and why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
LUC_SKIPPED=$(mktemp)
export LUC_SKIPPED
trap 'rm -f "$LUC_SKIPPED"' EXIT

status=0
scripts/cargo.sh test --release --workspace --locked --no-fail-fast || status=$?
count=$(wc -l <"$LUC_SKIPPED")
echo "skipped tests: $count"
sort "$LUC_SKIPPED"
exit "$status"
