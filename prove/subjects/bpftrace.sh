#!/usr/bin/env bash
# Runs bpftrace with the script $1. It needs tracepoints below /sys/kernel/tracing, which not every system mounts: a mount
# namespace of its own leaves this system unchanged.
set -euo pipefail

if [[ -z ${OWN_MOUNTS:-} ]]; then
	OWN_MOUNTS=yes exec unshare --mount "$0" "$@"
fi
if ! mountpoint -q /sys/kernel/tracing && ! mountpoint -q /sys/kernel/debug/tracing; then
	mount -t tracefs tracefs /sys/kernel/tracing
fi
exec bpftrace -B line "$1"
