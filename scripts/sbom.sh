#!/usr/bin/env bash
# Writes a bill of materials (CycloneDX, JSON) for luc, luc-fleet, luc-exec, lucd and the gate's library into a folder, by
# cargo-cyclonedx. It is the same wherever the sources are.
#
# usage: sbom.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=$PWD/scripts/cargo.sh
SOURCE_DATE_EPOCH=$(scripts/commit.sh date)
export SOURCE_DATE_EPOCH

# It writes beside each manifest, so it gets a copy of the sources.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=target Cargo.toml Cargo.lock crates prove vm kernel | tar -x -C "$copy"
# As scripts/preload.sh builds it.
sed -i 's/^\[lib\]$/&\ncrate-type = ["cdylib"]/' "$copy/crates/act/gate/preload/Cargo.toml"
(cd "$copy" && "$cargo" cyclonedx --manifest-path Cargo.toml --format json --spec-version 1.5 --describe binaries -qq)
for file in crates/luc/luc_bin crates/fleet/fleet/luc-fleet_bin crates/act/service/luc-exec_bin crates/act/service/lucd_bin \
	crates/act/gate/preload/luc_gate_preload_cdylib; do
	if [[ ! -e $copy/$file.cdx.json ]]; then
		echo "sbom: cargo-cyclonedx wrote no ${file##*/}.cdx.json; \`cargo cyclonedx --version\` should say 0.5.9 or later" >&2
		exit 2
	fi
	name=${file##*/}
	sed "s|$copy|/usr/src/luc|g" "$copy/$file.cdx.json" >"$folder/${name%_*}.cdx.json"
done
