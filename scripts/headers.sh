#!/usr/bin/env bash
# Fetches headers of kernels for which the modules are compiled in tests (crates/act/module/tests/headers.rs) into
# ~/.cache/luc/headers. They are unpacked and not installed: Debian's newer headers bring their kernel along, which would
# be the next to boot.
#
# It fetches, of each series that this machine's package sources offer, the oldest and the newest release and the newest
# real-time and cloud variants. Compiling for all releases would cost minutes and find no more.
set -euo pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/luc/headers

for tool in apt-cache apt-get dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "headers: no kernel headers are fetched: $tool is not here (Debian and Ubuntu have it)"
		exit 0
	fi
done

# Prints the releases to fetch.
releases() {
	local all series one
	all=$(apt-cache pkgnames linux-headers- |
		sed -nE 's/^linux-headers-([0-9]+\.[0-9]+\.[0-9].*-amd64)$/\1/p' | sort -V)
	while read -r series; do
		one=$(grep -F "$series." <<<"$all") || continue
		{ grep -Ev -e '-(rt|cloud)-' <<<"$one" || true; } | sed -n '1p;$p'
		for variant in -rt- -cloud-; do { grep -e "$variant" <<<"$one" || true; } | tail -n 1; done
	done < <(sed -E 's/^([0-9]+\.[0-9]+)\..*/\1/' <<<"$all" | sort -uV)
}

# The packages of release $1 that bring headers and the kernel's build.
packages() {
	echo "linux-headers-$1"
	apt-cache depends "linux-headers-$1" | sed -nE 's/^ *Depends: (linux-(headers|kbuild)-.*)$/\1/p'
}

if ! apt-cache policy | grep -q -e -backports; then
	echo "headers: no backports are among this machine's package sources: their kernels are left out"
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
while read -r release; do
	if [[ -e $cache/usr/src/linux-headers-$release/Makefile || -e /lib/modules/$release/build/Makefile ]]; then continue; fi
	mkdir -p "$release"
	for package in $(packages "$release"); do
		if [[ -e $cache/$package.unpacked ]]; then continue; fi
		if ! (cd "$release" && apt-get -qq -o APT::Sandbox::User=root download "$package"); then
			echo "headers: $package cannot be fetched: the modules are not compiled for $release"
			continue 2
		fi
	done
	# The release's own package comes last: with its Makefile it is all there.
	for file in "$release"/linux-kbuild* "$release"/linux-headers*common* "$release"/linux-headers*; do
		if [[ ! -e $file ]]; then continue; fi
		dpkg-deb -x "$file" "$release.root"
		rm "$file"
	done
	sed -i "s|^include /usr/src/|include $cache/usr/src/|" "$release.root/usr/src/linux-headers-$release/Makefile"
	cp -an "$release.root/." "$cache/"
	for package in $(packages "$release"); do touch "$cache/$package.unpacked"; done
	rm -rf "$release.root"
	echo "headers: $release"
done < <(releases)
