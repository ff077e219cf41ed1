#!/usr/bin/env bash
# Prints what the tree is: lines, packages, dependencies and tests, now and at a commit before.
#
# usage: tree.sh [COMMIT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
before=${1:-302a5d76}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder"/{before,now}
git archive "$before" | tar -x -C "$folder/before"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$folder/now" 2>/dev/null || true

rust() { find "$1" -name '*.rs' -not -path '*/target/*' -print0; }
lines() { rust "$1" | xargs -0 cat | wc -l; }
# Doc comments of one to three words, which repeat a name.
short_comments() {
	rust "$1" | xargs -0 awk '
		FNR == 1 { words = 0; block = 0 }
		/^ *\/\/\// { words += NF - 1; block = 1; next }
		{ if (block && words > 0 && words <= 3 && !/#\[(arg|command|value)/) short++; words = 0; block = 0 }
		END { print short + 0 }' | awk '{ sum += $1 } END { print sum }'
}
packages() { grep -rlE '^\[package\]' "$1" --include=Cargo.toml | grep -cv '/fuzz/'; }
row() { printf '| %s | %s | %s |\n' "$1" "$("$2" "$folder/before")" "$("$2" "$folder/now")"; }
locked() { grep -c '^name = ' "$1/Cargo.lock"; }
tests() { rust "$1" | xargs -0 grep -hcE '^ *#\[test\]' | awk '{ sum += $1 } END { print sum }'; }
long_files() { rust "$1" | xargs -0 wc -l | awk '$2 != "total" && $1 > 500' | wc -l; }
c_lines() { find "$1" '(' -name '*.c' -o -name '*.h' ')' -print0 | xargs -0 cat | wc -l; }

printf '| | %s | now |\n|---|---:|---:|\n' "$(git rev-parse --short=8 "$before")"
row 'lines of Rust, with tests' lines
row 'lines of C' c_lines
row 'packages' packages
row 'packages in Cargo.lock' locked
row 'tests' tests
row 'doc comments of three words or fewer, without options of commands' short_comments
row 'files of more than 500 lines' long_files
printf '\n| folder | packages | lines of Rust |\n|---|---:|---:|\n'
# shellcheck disable=SC2016
for part in "$folder"/now/crates/*/ "$folder"/now/{prove,vm,fuzz}/; do
	printf '| `%s` | %s | %s |\n' "${part#"$folder"/now/}" "$(packages "$part" || true)" "$(lines "$part")"
done
