#!/usr/bin/env bash
# Builds a QEMU with processors in parallel (vm/qemu/README.md) into ~/.cache/luc/qemu/parallel. Its source, and the meson
# that builds it, come by apt from the backports of this machine's own distribution. Root, where a package is missing.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/apt-unpack.sh
source "$folder/scripts/apt-unpack.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/luc/qemu
version=10.0.2
mark="luc-parallel 1"

fail() {
	echo "qemu: $1" >&2
	exit 2
}

if [[ $(uname -m) != x86_64 ]]; then fail "only x86-64 guests are known: build it on such a machine"; fi
if [[ $("$cache/parallel/bin/qemu-system-x86_64" --version 2>/dev/null) == *"$version ($mark)"* ]]; then
	echo "qemu: QEMU $version ($mark) is there"
	exit 0
fi
if ! command -v apt-get >/dev/null; then fail "its source comes by apt-get, which is not here: use Debian"; fi

missing=()
need() {
	[[ -e $1 ]] || missing+=("$2")
}
need /usr/bin/gcc gcc
need /usr/bin/pkg-config pkg-config
need /usr/bin/ninja ninja-build
need /usr/bin/flex flex
need /usr/bin/bison bison
need /usr/bin/patch patch
need /usr/bin/python3 python3
need /usr/include/glib-2.0/glib.h libglib2.0-dev
need /usr/include/libfdt.h libfdt-dev
need /usr/include/zlib.h zlib1g-dev
# Firmware.
need /usr/share/qemu/pvh.bin qemu-system-data
need /usr/share/seabios/bios-256k.bin seabios
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi
if ((${#missing[@]})); then
	if [[ $EUID != 0 ]]; then fail "missing packages, to be installed as root: ${missing[*]}"; fi
	echo "qemu: installing ${missing[*]}"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/building.XXXXXX")
trap 'rm -rf "$work"' EXIT
apt_of_backports "$work" || fail "this distribution has no backports to take QEMU's source from: use Debian 12"
(cd "$work" && apt-get "${apt_options[@]}" source --download-only --tar-only qemu) ||
	fail "QEMU's source cannot be fetched: see what apt says above"
source=("$work/qemu_$version"*.orig.tar.xz)
if [[ ! -e ${source[0]} ]]; then fail "the backports have no QEMU $version, for which the patch is made"; fi
apt_unpack "$work" "$work/meson" meson || fail "meson cannot be fetched: see what apt says above"
tar -x -C "$work" -f "${source[0]}"
tree=$work/qemu-$version
patch -s -d "$tree" -p1 <"$folder/vm/qemu/parallel.patch"
# Debian's source has no firmware of others, and pycotap is for QEMU's own tests.
sed -i 's/unpack_edk2_blobs = bzip2.found()/unpack_edk2_blobs = false/' "$tree/meson.build"
sed -i '/^pycotap/d' "$tree/pythondeps.toml"

echo "qemu: building QEMU $version, which takes minutes"
export PYTHONPATH=$work/meson/usr/lib/python3/dist-packages
mkdir "$tree/build"
build() {
	cd "$tree/build" &&
		../configure --target-list=x86_64-softmmu --without-default-features --enable-tcg --enable-system \
			--disable-docs --disable-install-blobs --with-pkgversion="$mark" &&
		ninja -j "${CARGO_BUILD_JOBS:-$(nproc)}" qemu-system-x86_64
}
if ! (build) >"$work/log" 2>&1; then
	tail -n 20 "$work/log" >&2
	fail "QEMU was not built: see the end of its log above"
fi
mkdir -p "$work/parallel/bin"
cp "$tree/build/qemu-system-x86_64" "$work/parallel/bin/"
strip "$work/parallel/bin/qemu-system-x86_64"
rm -rf "$cache/parallel"
mv "$work/parallel" "$cache/parallel"
echo "qemu: $("$cache/parallel/bin/qemu-system-x86_64" --version | head -n 1)"
