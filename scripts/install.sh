#!/usr/bin/env bash
# Installs a built luc: the program, the gate's library, manual pages and completions.
#
# usage: install.sh BUILD_DIR PREFIX [DESTDIR]
set -euo pipefail
build=$1 prefix=$2 root=${3:-}$2
share=$root/share

for file in luc libluc_gate.so; do
	if [[ ! -e $build/$file ]]; then
		echo "install: $build/$file is not there; run \`make build\` first" >&2
		exit 2
	fi
done
install -D -m 755 "$build/luc" "$root/bin/luc"
install -D -m 644 "$build/libluc_gate.so" "$root/lib/luc/libluc_gate.so"

install -d "$share/man/man1" "$share/bash-completion/completions" \
	"$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$build/luc" man --dir "$share/man/man1"
"$build/luc" completions bash >"$share/bash-completion/completions/luc"
"$build/luc" completions zsh >"$share/zsh/site-functions/_luc"
"$build/luc" completions fish >"$share/fish/vendor_completions.d/luc.fish"
install -D -m 644 "$(dirname "${BASH_SOURCE[0]}")/../LICENSE" "$share/doc/luc/LICENSE"
echo "installed luc under $root (prefix $prefix)"
