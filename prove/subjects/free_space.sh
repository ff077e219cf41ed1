#!/usr/bin/env bash
# Frees the space of all but the end of the large files below folder $1, until SIGINT.
set -u

# A file keeps more than a writer adds between two looks at its size; holes end at block boundaries.
kept=$((256 << 20)) alignment=$((1 << 20))
trap 'exit 0' INT TERM
echo begun
while sleep 0.2; do
	find "$1" -type f -size +${kept}c -printf '%s %p\n' 2>/dev/null | while read -r bytes path; do
		fallocate --punch-hole --offset 0 --length $(((bytes - kept) / alignment * alignment)) "$path" 2>/dev/null
	done
done
