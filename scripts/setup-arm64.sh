#!/usr/bin/env bash
# Fetches what building LUC for 64-bit Arm and trying it in an emulated machine need, and this machine has for its own
# architecture only: Debian's kernels, C library and other libraries for arm64. They are unpacked into ~/.cache/luc/arm64
# and never installed: `root` has the libraries and headers, `kernel/RELEASE` a kernel each.
set -euo pipefail
# shellcheck source=scripts/apt-unpack.sh
source "$(dirname "${BASH_SOURCE[0]}")/apt-unpack.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/luc/arm64
# Raised when more is fetched, so that nobody takes what an earlier version has left.
version=1
# bash runs the guest's script and busybox what it calls; luc makes and checks file systems by e2fsprogs.
packages=(libc6 libc6-dev linux-libc-dev libgcc-s1 libelf1 libelf-dev zlib1g zlib1g-dev busybox-static bash libtinfo6 e2fsprogs libext2fs2 libss2 libcom-err2 libblkid1 libuuid1)
# Kernels of clouds have all that the guest needs, in half the size.
kernels=(linux-image-cloud-arm64 linux-image-6.12-cloud-arm64)

if [[ -e $cache/$version ]]; then exit 0; fi
for tool in apt-get apt-cache dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "setup-arm64: packages for arm64 cannot be fetched: $tool is not here (Debian has it)" >&2
		exit 2
	fi
done

mkdir -p "$(dirname "$cache")"
work=$(mktemp -d "$cache.fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! apt_of_architecture "$work" arm64; then
	echo "setup-arm64: the lists of packages for arm64 cannot be fetched: see what apt says above" >&2
	exit 2
fi
mkdir "$work/got" "$work/got/kernel"
if ! apt_unpack "$work" "$work/got/root" "${packages[@]}"; then
	echo "setup-arm64: libraries for arm64 cannot be fetched: see what apt says above" >&2
	exit 2
fi
for package in "${kernels[@]}"; do
	# The package of no version depends on that of the newest release.
	image=$(apt-cache "${apt_options[@]}" depends "$package" | sed -nE 's/^ *Depends: (linux-image-[0-9].*)$/\1/p')
	if [[ -z $image ]]; then
		echo "setup-arm64: this distribution has no $package, so its kernel is left out"
		continue
	fi
	release=${image#linux-image-}
	if ! apt_unpack "$work" "$work/kernel" "$image"; then
		echo "setup-arm64: $image cannot be fetched: see what apt says above" >&2
		exit 2
	fi
	folder=$work/got/kernel/$release
	mkdir -p "$folder/lib"
	mv "$work/kernel/boot/vmlinuz-$release" "$folder/vmlinux"
	mv "$work"/kernel/*/modules "$folder/lib/modules" 2>/dev/null || mv "$work"/kernel/usr/lib/modules "$folder/lib/modules"
	# Busybox loads no compressed modules.
	find "$folder/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$folder" "$release"
	rm -rf "$work/kernel"
done
touch "$work/got/$version"
rm -rf "$cache"
mv "$work/got" "$cache"
echo "setup-arm64: kernels and libraries for arm64, unpacked into $cache"
