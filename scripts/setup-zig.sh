#!/usr/bin/env bash
# Finds zig and cargo-zigbuild, by which packages are linked for an older glibc than this system's, or installs them from
# Python's registry into ~/.cache/luc/zig. Prints the folder of the programs.
set -euo pipefail
folder=${XDG_CACHE_HOME:-$HOME/.cache}/luc/zig
# The versions that packages were tested with.
wanted=(ziglang==0.17.1 cargo-zigbuild==0.24.1)

if ! "$folder/bin/cargo-zigbuild" --version >/dev/null 2>&1; then
	mkdir -p "$(dirname "$folder")"
	rm -rf "$folder"
	if ! python3 -m venv "$folder" >&2 || ! "$folder/bin/pip" install --quiet "${wanted[@]}" >&2; then
		rm -rf "$folder"
		echo "setup-zig: ${wanted[*]} cannot be installed: install python3-venv, and see what is said above" >&2
		exit 2
	fi
fi
printf '%s\n' "$folder/bin"
