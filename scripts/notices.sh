#!/usr/bin/env bash
# Prints the crates that luc, luc-fleet, luc-exec, lucd and the gate's library contain: name, version, licenses, and the notices and
# license texts that each brings along. A text that several crates have is printed once.
#
# usage: notices.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src

crates() {
	scripts/cargo.sh tree --locked --offline -p luc -p luc-fleet -p luc-gate-preload -p luc-service -e normal,no-proc-macro \
		--target "$(scripts/cargo.sh -vV | sed -n 's/^host: //p')" --prefix none --format '{p}|{l}|{r}' |
		grep . | grep -v '(/' | sed 's/ (\*)$//' | sort -u
}

declare -A first
while IFS='|' read -r crate licenses repository; do
	name=${crate%% *} version=${crate##* v}
	printf '== %s %s\n%s\n%s\n' "$name" "$version" "$licenses" "$repository"
	while read -r file; do
		hash=$(sha256sum "$file" | cut -d' ' -f1)
		if [[ -n ${first[$hash]:-} ]]; then
			printf '%s: as %s\n' "${file##*/}" "${first[$hash]}"
		else
			first[$hash]="${file##*/} of $name"
			printf '%s:\n\n' "${file##*/}"
			cat "$file"
			printf '\n'
		fi
	done < <(find "$registry"/*/"$name-$version" -maxdepth 1 -type f \
		'(' -iname 'license*' -o -iname 'licence*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' ')' | sort)
	printf '\n'
done < <(crates)
