#!/usr/bin/env bash
# Installs a built luc: the programs luc, luc-fleet and, if it was built, luc-fleet-store, the gate's library,
# what services need, the kernel module's sources for DKMS, manual pages and completions. The sources go where
# DKMS looks for them if root installs into the running system, else below PREFIX. luc itself has them inside.
#
# usage: install.sh BUILD_DIR PREFIX [DESTDIR]
set -euo pipefail
build=$1 prefix=$2 root=${3:-}$2
share=$root/share

for file in luc luc-fleet luc-exec lucd libluc_gate_preload.so; do
	if [[ ! -e $build/$file ]]; then
		echo "install: $build/$file is not there; run \`make product\` first" >&2
		exit 2
	fi
done
if ! "$build/luc" man >/dev/null 2>&1; then
	echo "install: $build/luc has only the commands that \`make demo\` uses; run \`make product\` first" >&2
	exit 2
fi
# Debug information is most of each file, and only developers need it.
strip=()
if command -v strip >/dev/null; then strip=(-s); fi
install -D "${strip[@]}" -m 755 "$build/luc" "$root/bin/luc"
install -D "${strip[@]}" -m 755 "$build/luc-fleet" "$root/bin/luc-fleet"
install -D "${strip[@]}" -m 644 "$build/libluc_gate_preload.so" "$root/lib/luc/libluc_gate_preload.so"
# For services: what systemd starts before a service's program, and what serves services together.
install -D "${strip[@]}" -m 755 "$build/luc-exec" "$root/lib/luc/luc-exec"
install -D "${strip[@]}" -m 755 "$build/lucd" "$root/lib/luc/lucd"
install -d "$root/lib/systemd/system"
packaging=$(dirname "${BASH_SOURCE[0]}")/../packaging
sed "s|@LIB@|$prefix/lib/luc|" "$packaging/lucd.service" >"$root/lib/systemd/system/lucd.service"
chmod 644 "$root/lib/systemd/system/lucd.service"
install -m 644 "$packaging/lucd.socket" "$root/lib/systemd/system/lucd.socket"
# Its name until 0.1.0.
rm -f "$root/lib/luc/libluc_gate.so"

install -d "$share/man/man1" "$share/bash-completion/completions" \
	"$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$build/luc" man --dir "$share/man/man1"
"$build/luc" completions bash >"$share/bash-completion/completions/luc"
"$build/luc" completions zsh >"$share/zsh/site-functions/_luc"
"$build/luc" completions fish >"$share/fish/vendor_completions.d/luc.fish"
# luc's page of `luc fleet` gives way to luc-fleet's own.
"$build/luc-fleet" man --dir "$share/man/man1"
"$build/luc-fleet" completions bash >"$share/bash-completion/completions/luc-fleet"
"$build/luc-fleet" completions zsh >"$share/zsh/site-functions/_luc-fleet"
"$build/luc-fleet" completions fish >"$share/fish/vendor_completions.d/luc-fleet.fish"
if [[ -e $build/luc-fleet-store ]]; then
	install -D "${strip[@]}" -m 755 "$build/luc-fleet-store" "$root/bin/luc-fleet-store"
else
	rm -f "$share"/man/man1/luc-fleet-{push,stored}.1
fi
install -D -m 644 "$(dirname "${BASH_SOURCE[0]}")/../LICENSE" "$share/doc/luc/LICENSE"

module=$(dirname "${BASH_SOURCE[0]}")/../kernel/luc
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$module/dkms.conf")
sources=$share/luc/kernel
if [[ $EUID == 0 && -z ${3:-} && $prefix =~ ^/usr(/local)?/?$ ]]; then
	# What an earlier installation left here is of no use.
	rm -rf "$sources"
	sources=/usr/src/luc-$version
fi
install -d "$sources"
# DKMS would still compile files that this version no longer has.
rm -f "$sources"/*.c "$sources"/*.h
install -m 644 "$module"/*.c "$module"/*.h "$module"/{Kbuild,Makefile,dkms.conf,README.md} "$sources"
if [[ $sources == /usr/src/* ]]; then
	echo "\`luc kernel load\` builds the kernel module; DKMS finds its sources in $sources (\`dkms install luc/$version\`)"
fi
echo "installed luc under $root (prefix $prefix)"
