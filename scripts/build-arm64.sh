#!/usr/bin/env bash
# Builds luc and the gate's library for 64-bit Arm into target/aarch64-unknown-linux-gnu/release, on a machine of another
# architecture. setup-arm64.sh has fetched the libraries, and setup.sh the compiler (gcc-aarch64-linux-gnu).
set -euo pipefail
# shellcheck source=scripts/toolchain.sh
source "$(dirname "${BASH_SOURCE[0]}")/toolchain.sh"
target=aarch64-unknown-linux-gnu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/luc/arm64
root=$cache/root

if [[ ! -d $root ]]; then
	echo "build-arm64: there are no libraries for arm64: run scripts/setup-arm64.sh" >&2
	exit 2
fi
if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
	echo "build-arm64: aarch64-linux-gnu-gcc is not here: install gcc-aarch64-linux-gnu" >&2
	exit 2
fi
if ! folder=$(find_toolchain); then
	echo "build-arm64: no Rust >= 1.$rust_minor_needed found; run \`make setup\`" >&2
	exit 2
fi
if [[ ! -d $("$folder/rustc" --print target-libdir --target $target) ]]; then
	if ! "$folder/rustup" target add $target; then
		echo "build-arm64: Rust's library for $target is not here: install Rust by rustup (https://rustup.rs)" >&2
		exit 2
	fi
fi

# The linker looks for these two; the C library is the cross compiler's own.
libraries=$cache/libraries
mkdir -p "$libraries" "$cache/include"
for library in libelf.so.1 libz.so.1; do
	found=$(find "$root" -name $library -print -quit)
	cp -L "$found" "$libraries/${library%.1}"
done
cp -r "$root"/usr/include/{libelf.h,gelf.h,elfutils,zlib.h,zconf.h} "$cache/include/"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-L $libraries"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
export CFLAGS_aarch64_unknown_linux_gnu="-isystem $cache/include"
export LIBBPF_SYS_EXTRA_CFLAGS="-isystem $cache/include"
# libbpf asks pkg-config where the libraries are.
export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/cargo.sh build --release --locked --target $target -p luc
scripts/preload.sh "${CARGO_TARGET_DIR:-target}/$target/release" --target $target
