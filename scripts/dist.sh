#!/usr/bin/env bash
# Builds what packages contain, so that the same commit gives the same bytes wherever its sources are: paths are replaced,
# and `luc --version` has the commit. The last line of the output is the folder of what was built.
#
# usage: dist.sh
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
for prefix in "${prefixes[@]}"; do
	flags+=("--remap-path-prefix=$prefix")
	c_flags+=" -ffile-prefix-map=$prefix"
done
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\x1f' "${flags[@]}")
export CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS%$'\x1f'}
export CFLAGS="${CFLAGS:-}$c_flags"
# Not what a developer has set for other builds.
unset RUSTFLAGS

scripts/cargo.sh build --profile dist --locked -p luc -p luc-fleet -p luc-gate-preload >&2
printf '%s\n' "$target/dist"
