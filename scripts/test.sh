#!/usr/bin/env bash
# Compiles everything once and runs all tests. Says which were skipped and why, and which took longest.
#
# usage: test.sh [all]    all: also those that take long (`make test-all`)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
LUC_SKIPPED=$(mktemp)
export LUC_SKIPPED
trap 'rm -f "$LUC_SKIPPED"' EXIT
PATH=$(scripts/setup-nextest.sh):$PATH
target=${CARGO_TARGET_DIR:-target}
what=(--release --workspace --locked)
ignored=default
if [[ ${1:-} == all ]]; then
	ignored=all
else
	# A third of all packages to compile, for TLS and HTTP, and twelve tests.
	what+=(--exclude luc-fleet-store)
fi

begin=$SECONDS
# With the tests, since what these depend on has more features: else it is compiled twice.
scripts/cargo.sh build "${what[@]}" --lib --bins --tests
scripts/preload.sh "$target/release"
compiled=$SECONDS
status=0
scripts/cargo.sh nextest run "${what[@]}" --run-ignored "$ignored" || status=$?
# Of the libraries that have examples.
scripts/cargo.sh test --doc --release --locked -p luc-counters -p luc-fleet-clocks -p luc-stats -p luc-units || status=$?

echo "compiled in $((compiled - begin)) s, tested in $((SECONDS - compiled)) s; the ten slowest tests, s:"
sed -nE 's/.*<testcase name="([^"]*)" classname="([^"]*)".* time="([0-9.]+)".*/\3 \2 \1/p' \
	"$target/nextest/default/junit.xml" | sort -rn | sed -n '1,10p'
echo "skipped tests: $(wc -l <"$LUC_SKIPPED")"
sort "$LUC_SKIPPED"
exit "$status"
