#!/usr/bin/env bash
# Runs cargo of a Rust that is new enough, wherever it is installed.
set -euo pipefail
# shellcheck source=scripts/toolchain.sh
source "$(dirname "${BASH_SOURCE[0]}")/toolchain.sh"

if ! folder=$(find_toolchain); then
	echo "no Rust >= 1.$rust_minor_needed found; run \`make setup\`, or install one by rustup (https://rustup.rs)" >&2
	exit 2
fi
case ":$PATH:" in
"$folder":*) ;;
*) export PATH="$folder:$PATH" ;;
esac
exec cargo "$@"
