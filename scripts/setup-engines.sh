#!/usr/bin/env bash
# Finds engines that read what `luc fleet export` writes, or installs them from Python's registry into ~/.cache/luc. Prints
# the path of their Python. Spark needs a Java, which `make setup-evaluate` installs.
#
# usage: setup-engines.sh [duckdb|spark]
set -euo pipefail
engine=${1:-duckdb}
case $engine in
duckdb) wanted=(duckdb==2.0.1) module=duckdb ;;
spark) wanted=(pyspark==4.1.4) module=pyspark ;;
*)
	echo "setup-engines: $engine: neither duckdb nor spark" >&2
	exit 2
	;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/luc/$engine

if ! "$folder/bin/python" -c "import $module" >/dev/null 2>&1; then
	mkdir -p "$(dirname "$folder")"
	rm -rf "$folder"
	if ! python3 -m venv "$folder" >&2 || ! "$folder/bin/pip" install --quiet "${wanted[@]}" >&2; then
		rm -rf "$folder"
		echo "setup-engines: ${wanted[*]} cannot be installed: install python3-venv, and see what is said above" >&2
		exit 2
	fi
fi
printf '%s\n' "$folder/bin/python"
