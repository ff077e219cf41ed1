#!/usr/bin/env bash
# The report of luc $2 on the gate of commit $4, built in a temporary worktree $3 of the sources $1. Status 3: there is no
# such commit.
set -euo pipefail

root=$1 luc=$2 tree=$3 commit=$4
git -C "$root" worktree add --detach "$tree" "$commit" >&2 || exit 3
trap 'git -C "$root" worktree remove --force "$tree" >&2' EXIT
cd "$tree"
export CARGO_TARGET_DIR=$tree/target
scripts/cargo.sh build --release --locked -p luc -p luc-gate-preload >&2
# 1 is bad news, and an answer, too.
"$luc" faults --json --runner "$tree/target/release/luc" || [ $? = 1 ]
