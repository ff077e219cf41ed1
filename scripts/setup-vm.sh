#!/usr/bin/env bash
# Finds a QEMU for several processors in virtual time (8.1 or later), or unpacks that of the distribution's backports into
# ~/.cache/luc/qemu/unpacked (docs/reference/vm.md). The system's own QEMU stays as it is.
set -euo pipefail
# shellcheck source=scripts/apt-unpack.sh
source "$(dirname "${BASH_SOURCE[0]}")/apt-unpack.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/luc/qemu
without="several processors in virtual time need QEMU 8.1 or later"

# Whether version $1, as `QEMU emulator version 7.2.22 (...)`, runs several processors in virtual time: from 8.1 on.
runs_several() {
	[[ $1 =~ version\ ([0-9]+)\.([0-9]+) ]] || return 1
	((BASH_REMATCH[1] > 8 || (BASH_REMATCH[1] == 8 && BASH_REMATCH[2] >= 1)))
}

if [[ $(uname -m) != x86_64 ]]; then exit 0; fi
for program in qemu-system-x86_64 "$cache/unpacked/usr/bin/qemu-system-x86_64"; do
	if runs_several "$("$program" --version 2>/dev/null)"; then exit 0; fi
done
for tool in apt-get dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "setup-vm: $without, and $tool is not here: install a newer QEMU" >&2
		exit 2
	fi
done

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! apt_of_backports "$work"; then
	echo "setup-vm: $without, and this distribution has no backports: install a newer QEMU" >&2
	exit 2
fi
if ! apt_unpack "$work" "$work/root" qemu-system-x86 qemu-system-common qemu-system-data; then
	echo "setup-vm: $without, and the backports' cannot be fetched: see what apt says above" >&2
	exit 2
fi
if ! said=$("$work/root/usr/bin/qemu-system-x86_64" --version 2>&1) || ! runs_several "$said"; then
	echo "setup-vm: the backports' QEMU does not run here: ${said%%$'\n'*}: install what it lacks" >&2
	exit 2
fi
rm -rf "$cache/unpacked"
mv "$work/root" "$cache/unpacked"
echo "setup-vm: ${said%%$'\n'*}, unpacked beside the system's"
