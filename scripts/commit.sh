#!/usr/bin/env bash
# Prints which commit these sources are: its first 12 digits, and "changed" if files differ from it; with "date", the
# time of the commit in seconds since 1970; with "author", who made it. In sources without git, COMMIT, SOURCE_DATE_EPOCH
# and MAINTAINER say so.
#
# usage: commit.sh [date|author]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

from_git() {
	git rev-parse --is-inside-work-tree >/dev/null 2>&1 && git log -1 --format="$1" 2>/dev/null
}

case ${1:-} in
date) said=${SOURCE_DATE_EPOCH:-} variable=SOURCE_DATE_EPOCH format=%ct ;;
author) said=${MAINTAINER:-} variable=MAINTAINER format="%an <%ae>" ;;
*) said=${COMMIT:-} variable=COMMIT format="commit %H" ;;
esac
if [[ -n $said ]]; then
	echo "$said"
	exit 0
fi
if ! found=$(from_git "$format"); then
	echo "commit: these sources are in no git repository; set $variable" >&2
	exit 2
fi
if [[ $variable == COMMIT ]]; then
	found=${found:0:19}
	if [[ -n $(git status --porcelain --untracked-files=no) ]]; then found+=", changed"; fi
fi
echo "$found"
