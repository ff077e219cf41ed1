#!/usr/bin/env bash
# Checks form, lints, links of the documentation, BPF programs, shell scripts, and dependencies (licences, sources,
# advisories).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=scripts/cargo.sh

$cargo fmt --all --check
$cargo clippy --workspace --all-targets --locked -- -D warnings
# What `make demo` builds.
$cargo clippy -p luc --no-default-features --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" $cargo doc --workspace --no-deps --document-private-items --locked --quiet
clang-format --dry-run --Werror crates/see/probe/bpf/*.[ch] vm/src/*.c
find kernel -name "*.[ch]" ! -name trace_luc.h -exec clang-format --dry-run --Werror {} +
# Sentences of doc comments and help texts.
scripts/english.py
shellcheck -x scripts/*.sh packaging/*/pack.sh .ci/run
# Scripts of the guests: all are bash's except the first process, which is busybox's.
find crates prove vm -name "*.sh" -exec shellcheck -x {} +
if ! $cargo deny --version >/dev/null 2>&1; then
	echo "skipped: licences, sources and advisories of dependencies: cargo-deny is not installed (\`make setup-lint\`)"
	exit 0
fi
$cargo deny --locked check bans licenses sources
# Advisories come from https://github.com/RustSec/advisory-db.
if $cargo deny --locked fetch db; then
	$cargo deny --locked check --disable-fetch advisories
else
	echo "skipped: advisories of dependencies: their database cannot be fetched"
fi
