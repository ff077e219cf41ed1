#!/usr/bin/env bash
# Builds what packages contain, so that the same commit gives the same bytes wherever its sources are: paths are replaced,
# and `luc --version` has the commit. The last line of the output is the folder of what was built.
#
# usage: dist.sh
#
# GLIBC (2.28, of RHEL 8) is the oldest glibc that the programs run with, for which zig links them; GLIBC=system links
# them for this system's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
registry=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
commit=$(scripts/commit.sh)
export LUC_VERSION="$version ($commit)"

# The last prefix that fits counts, for rustc and for C compilers. Files of the registry and what build scripts write
# keep their names.
prefixes=("$root=/usr/src/luc" "$registry=/usr/src/cargo" "$target=/usr/src/target")
flags=("-Clink-arg=-Wl,--build-id=sha1") c_flags=
zig=
if [[ ${GLIBC:-} != system ]]; then
	zig=$(scripts/setup-zig.sh)
	# Of the headers of its C library.
	prefixes+=("$(dirname "$zig")=/usr/src/zig")
fi
for prefix in "${prefixes[@]}"; do
	flags+=("--remap-path-prefix=$prefix")
	c_flags+=" -ffile-prefix-map=$prefix"
done
# Joins words as cargo separates them.
join() {
	local IFS=$'\x1f'
	printf '%s' "$*"
}
CARGO_ENCODED_RUSTFLAGS=$(join "${flags[@]}")
export CARGO_ENCODED_RUSTFLAGS
export CFLAGS="${CFLAGS:-}$c_flags"
# Not what a developer has set for other builds.
unset RUSTFLAGS

packages=(-p luc -p luc-fleet -p luc-service)
if [[ -z $zig ]]; then
	scripts/cargo.sh build --profile dist --locked "${packages[@]}" >&2
	scripts/preload.sh "$target/dist" >&2
	printf '%s\n' "$target/dist"
	exit 0
fi

# Of the system's libraries only these two: what else is beside them is of the system's own glibc. rustc gets this folder
# by a name that is the same in all trees, as names of symbols follow from its words.
libraries=target/dist-libraries
rm -rf "$libraries"
mkdir -p "$libraries"
for file in libelf.so libz.so; do
	ln -s "$(realpath "$(cc -print-file-name="$file")")" "$libraries/$file"
done
for file in gelf.h libelf.h zconf.h zlib.h; do
	ln -s "$(printf '#include <%s>\n' "$file" | cc -E -xc - | sed -nE "s|^# [0-9]+ \"(/[^\"]*/$file)\".*|\1|p" | head -1)" \
		"$libraries/$file"
done
export LIBBPF_SYS_EXTRA_CFLAGS="-I$root/$libraries"
# What these two need of a newer glibc is not there on the older system either.
flags+=("-Lnative=$libraries" "-Clink-arg=-Wl,--allow-shlib-undefined")
CARGO_ENCODED_RUSTFLAGS=$(join "${flags[@]}")
host=$(scripts/cargo.sh -vV | sed -n 's/^host: //p')
PATH=$zig:$PATH scripts/cargo.sh zigbuild --profile dist --locked --target "$host.${GLIBC:-2.28}" "${packages[@]}" >&2
# It has nothing of any C library's.
scripts/preload.sh "$target/$host/dist" >&2
printf '%s\n' "$target/$host/dist"
