#!/usr/bin/env bash
# Links libluc_gate_preload.so alone: no library that it needs, no symbol that a C library must have.
#
# usage: preload.sh FOLDER [CARGO OPTIONS]    puts it into FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1
shift
# On 64-bit Arm the compiler's own atomics would ask the C library which processor this is.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Ctarget-feature=-outline-atomics"
# Each segment is one more mapping in every process that starts.
linker=-Wl,--hash-style=gnu,-z,now,-z,noseparate-code,-z,norelro
flags=(-Clink-arg=-fuse-ld=bfd -Clink-arg=-nostartfiles "-Clink-arg=$linker" -Crelro-level=off -Cforce-unwind-tables=yes)
built=$(scripts/cargo.sh rustc --profile preload --package luc-gate-preload --crate-type cdylib --locked --message-format json-render-diagnostics "$@" -- "${flags[@]}" |
	grep -oE '"[^"]*/libluc_gate_preload\.so"' | tail -n 1 | tr -d '"')
mkdir -p "$folder"
# Renamed into its place: programs may have the old one mapped.
install -m 755 "$built" "$folder/libluc_gate_preload.so.new"
mv "$folder/libluc_gate_preload.so.new" "$folder/libluc_gate_preload.so"
