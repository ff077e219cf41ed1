#!/usr/bin/env bash
# Makes packages of what dist.sh has built: luc, luc-dkms and luc-dbgsym for Debian and Ubuntu, the same for rpm where
# rpmbuild is there, a tarball that runs from any folder, bills of materials, and checksums of all. The same build gives
# the same bytes: all times are the commit's.
#
# usage: packages.sh BUILD_DIR OUT_DIR
#
# REVISION (1) is the packages' revision. MAINTAINER is a name and address, by default those of the last commit. SIGN_KEY
# is a key of ssh-keygen, by which SHA256SUMS is signed. COMPRESSION (9) is xz's level. SBOM=no leaves out the bills of
# materials, for tests.
set -euo pipefail
shopt -s nullglob
umask 022
export LC_ALL=C
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/sbin:/sbin

for tool in dpkg-deb dpkg-shlibdeps objcopy xz; do
	if ! command -v "$tool" >/dev/null; then
		echo "packages: $tool is missing; run \`scripts/setup.sh packages\` as root" >&2
		exit 2
	fi
done

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
module_version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' kernel/luc/dkms.conf)
revision=${REVISION:-1}
maintainer=$(scripts/commit.sh author)
SOURCE_DATE_EPOCH=$(scripts/commit.sh date)
COMMIT=$(scripts/commit.sh)
export SOURCE_DATE_EPOCH COMMIT
# Several threads cut blocks of other sizes.
export DPKG_DEB_THREADS_MAX=1
compression=${COMPRESSION:-9}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$out"/*.deb "$out"/*.rpm "$out"/*.tar.xz "$out"/*.cdx.json "$out"/SHA256SUMS*

# What all of them share.
scripts/install.sh "$build" /usr "$work/usr-all" >/dev/null
scripts/notices.sh >"$work/licenses.txt"
if [[ ${SBOM:-} != no ]]; then scripts/sbom.sh "$out"; fi
binaries=(bin/luc bin/luc-fleet lib/luc/luc-exec lib/luc/lucd lib/luc/libluc_gate_preload.so)

# Copies what was installed to $1, without the module's sources: they are a package of their own.
stage() {
	mkdir -p "$1"
	cp -a "$work/usr-all/usr" "$1/"
	rm -r "$1/usr/share/luc" "$1/usr/share/doc/luc/LICENSE"
	(cd "$1/usr" && strip --remove-section=.comment --remove-section=.note "${binaries[@]}")
	gzip -9n "$1"/usr/share/man/man1/*
	gzip -9nc CHANGELOG.md >"$1/usr/share/doc/luc/changelog.gz"
	gzip -9nc "$work/licenses.txt" >"$1/usr/share/doc/luc/licenses.txt.gz"
}

# Copies the module's sources for DKMS to $1.
stage_module() {
	mkdir -p "$1/usr/src" "$1/usr/share/doc/luc-dkms"
	cp -a "$work/usr-all/usr/share/luc/kernel" "$1/usr/src/luc-$module_version"
	mv "$1/usr/src/luc-$module_version/README.md" "$1/usr/share/doc/luc-dkms/"
}

# Puts the debug information of the programs where debuggers look for it by build id, below $1, and prints the ids.
stage_debug() {
	local binary id
	for binary in "${binaries[@]}"; do
		id=$(readelf -n "$build/${binary##*/}" | sed -n 's/.*Build ID: //p')
		mkdir -p "$1/usr/lib/debug/.build-id/${id:0:2}"
		objcopy --only-keep-debug --compress-debug-sections "$build/${binary##*/}" \
			"$1/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
		chmod 644 "$1/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
		printf '%s\n' "$id"
	done
}

# Gives all below $1 the commit's time.
set_times() {
	find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# shellcheck source=packaging/debian/pack.sh
source packaging/debian/pack.sh
pack_debian
if command -v rpmbuild >/dev/null; then
	# shellcheck source=packaging/rpm/pack.sh
	source packaging/rpm/pack.sh
	pack_rpm
else
	echo "packages: no rpm packages: rpmbuild is missing (Debian's package rpm has it)"
fi

name=luc-$version-$(uname -m)-linux
scripts/install.sh "$build" "/$name" "$work/tarball" >/dev/null
# systemd does not look for units there.
rm -r "$work/tarball/$name/lib/systemd"
cp "$work/licenses.txt" CHANGELOG.md README.md "$work/tarball/$name/share/doc/luc/"
(cd "$work/tarball/$name" && strip --remove-section=.comment --remove-section=.note "${binaries[@]}")
tar -C "$work/tarball" -c --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
	--format=gnu "$name" | xz "-$compression" -T1 >"$out/$name.tar.xz"

(cd "$out" && sha256sum -- *.cdx.json *.deb *.rpm *.tar.xz >SHA256SUMS)
if [[ -n ${SIGN_KEY:-} ]]; then
	rm -f "$out/SHA256SUMS.sig"
	ssh-keygen -q -Y sign -f "$SIGN_KEY" -n luc "$out/SHA256SUMS"
fi
echo "packages: in $out:"
find "$out" -type f -printf '%10s %f\n' | sort -k2
