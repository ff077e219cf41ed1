#!/usr/bin/env bash
# Shows what LUC does. As root: on an emulated disk, the same benchmark without and with the gate,
# then power cuts that prove that nothing was lost. Without root: the benchmark where you are.
#
# usage: demo.sh BUILD_DIR
set -euo pipefail
build=$1
luc=$build/luc

bench() {
	"$luc" run --compare 3 -- "$luc" bench metarates --dir "$1" --threads 16 --seconds 3 --file-size 1k
}

step() {
	printf '\n== %s\n\n' "$*"
}

if [[ $EUID != 0 ]]; then
	folder=$(mktemp -d -p "$PWD" luc-demo.XXXXXX 2>/dev/null || mktemp -d -p "$HOME" luc-demo.XXXXXX)
	trap 'rm -rf "$folder"' EXIT
	step "Metarates on your own disk, without and with the gate"
	bench "$folder"
	step "As root, make demo adds an emulated disk with a 6 ms flush, and power cuts on it"
	exit 0
fi

folder=$(mktemp -d -t luc-demo.XXXXXX)
cleanup() {
	"$luc" disk remove luc-demo >/dev/null 2>&1 || true
	rmdir "$folder" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step "An emulated disk: a flush takes 6 ms, a write 20 us; ext4 on it, with the journal of a large disk"
"$luc" disk create luc-demo --model fixed --flush 6ms --write 20us --size 4G \
	--mkfs ext4 --mkfs-options "-J size=1024" --mount "$folder"
step "Metarates on it, without and with the gate"
bench "$folder"
step "Three power cuts under load: is everything there that was reported durable?"
"$luc" powercut --rounds 3 --policy auto
