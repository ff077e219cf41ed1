#!/usr/bin/env bash
# Builds and packs the last commit twice, in two folders, and compares the packages byte for byte; they go to OUT_DIR if
# they are the same. With "pack", packs one build twice, which takes less than a minute. What differs stays, and is named.
#
# usage: reproduce.sh OUT_DIR
#        reproduce.sh pack BUILD_DIR
set -euo pipefail
if (($# == 0)); then
	echo "reproduce: say where the packages shall go, as in \`reproduce.sh dist\`" >&2
	exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)

if [[ $1 == pack ]]; then
	build=$(realpath "$2")
	for out in first second; do
		COMPRESSION=1 scripts/packages.sh "$build" "$work/$out" >/dev/null
	done
else
	SOURCE_DATE_EPOCH=$(scripts/commit.sh date)
	COMMIT=$(scripts/commit.sh)
	COMMIT=${COMMIT%, changed}
	MAINTAINER=$(scripts/commit.sh author)
	export SOURCE_DATE_EPOCH COMMIT MAINTAINER
	mkdir -p "$1"
	# Paths of two lengths, one after the other, to need half the room.
	for out in first second; do
		tree=$work/tree
		if [[ $out == second ]]; then tree=$work/a-tree-in-another-place; fi
		mkdir "$tree"
		git archive HEAD | tar -x -C "$tree"
		env -u CARGO_TARGET_DIR "$tree/scripts/packages.sh" \
			"$(env -u CARGO_TARGET_DIR "$tree/scripts/dist.sh")" "$work/$out" >/dev/null
		rm -r "$tree"
	done
fi
if diff -r "$work/first" "$work/second"; then
	echo "reproduce: all files are the same:"
	cat "$work/first/SHA256SUMS"
	if [[ $1 != pack ]]; then cp "$work/first"/* "$1/"; fi
	rm -r "$work"
else
	echo "reproduce: not the same: compare $work/first and $work/second, as by diffoscope" >&2
	exit 1
fi
