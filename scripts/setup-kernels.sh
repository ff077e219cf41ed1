#!/usr/bin/env bash
# Makes kernels of newer and older distributions available to guests and to tests of the modules.
#
# It gives apt two archives with lists of their own, in ~/.cache/luc/archives: Debian's and Ubuntu's. Images come by
# `luc-vm` when they are first used. This script fetches headers, and a compiler that they run with, into
# ~/.cache/luc/archives/root. Nothing is installed, and a second call downloads nothing.
#
# usage: setup-kernels.sh [SERIES...]    default: 6.17, 7.0, the newest, and of 6.1 and 6.12 those that are not installed
set -euo pipefail
base=${XDG_CACHE_HOME:-$HOME/.cache}/luc/archives
# The release of Debian whose compiler builds all modules, and the series whose headers are fetched.
suite=trixie
series=("$@")
if ((${#series[@]} == 0)); then
	series=(6.17 7.0 newest)
	# Tests have modules for these, too, where the machine's distribution is a newer one.
	for one in 6.1 6.12; do
		if ! compgen -G "/lib/modules/$one.*/build/Makefile" >/dev/null; then series+=("$one"); fi
	done
fi
# What a build needs beside what headers depend on.
tools=(gcc-14 binutils make bash dash coreutils sed grep mawk findutils diffutils)

for tool in apt-get apt-cache dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "kernels: no newer kernels are fetched: $tool is not here (Debian and Ubuntu have it)"
		exit 0
	fi
done

# The address from which this machine has packages of $1, or else $2.
address() {
	local found
	# shellcheck disable=SC2016 # apt's own variable
	found=$(apt-get indextargets --format '$(REPO_URI)' "Origin: $1" 2>/dev/null | grep -v -e '-security' -e '/security\.' | sed -n 1p)
	echo "${found:-$2}"
}

# Makes archive $1 with the keys $2, suites $4 at address $3, unless it is there.
archive() {
	local folder=$base/$1
	if [[ -e $folder/apt.conf ]]; then return; fi
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	: >"$folder/status"
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: amd64\nSigned-By: %s\n' "$3" "$4" "$2" \
		>"$folder/archive.sources"
	cat >"$folder/new.conf" <<-CONF
		Dir::Etc::sourcelist "$folder/archive.sources";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$folder/lists";
		Dir::State::status "$folder/status";
		Dir::Cache "$folder/cache";
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
	CONF
	APT_CONFIG=$folder/new.conf apt-get -qq update
	mv "$folder/new.conf" "$folder/apt.conf"
}

# The file of keys $1: the system's, or unpacked from package $2, of the apt configuration $3.
keys() {
	local file=/usr/share/keyrings/$1.gpg
	if [[ ! -e $file ]]; then
		file=$base/keys$file
		if [[ ! -e $file ]]; then
			mkdir -p "$base/keys"
			(cd "$base/keys" && APT_CONFIG=$3 apt-get -qq -o APT::Sandbox::User=root download "$2")
			dpkg-deb -x "$base/keys/$2"_*.deb "$base/keys"
			rm "$base/keys/$2"_*.deb
		fi
	fi
	echo "$file"
}

# The newest release of series $2 in archive $1 that has headers; for series "newest", of all.
release() {
	local start=$2
	if [[ $start == newest ]]; then start='[0-9]+\.[0-9]+'; else start=${start//./\\.}; fi
	APT_CONFIG=$base/$1/apt.conf apt-cache pkgnames linux-headers- |
		sed -nE "s/^linux-headers-(${start}[.-].*-(amd64|generic))\$/\1/p" | grep -Ev -e '-(rt|cloud)-' | sort -V | tail -n 1
}

# Fetches packages into folder $2 from archive $1 with what they depend on, and unpacks them to folder $3.
unpack() {
	local folder=$2 root=$3 package
	APT_CONFIG=$base/$1/apt.conf apt-get -qq -y --no-install-recommends --download-only \
		-o Dir::Cache::archives="$folder" -o Debug::NoLocking=1 install "${@:4}" >/dev/null
	for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$root"; done
	rm -rf "$folder"
}

# Makes the folder with the compiler, and with the headers of the release $1 of Debian.
make_root() {
	local root=$work/root name
	mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{dev,proc,tmp,source,work} "$work/debs/partial"
	for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
	unpack debian "$work/debs" "$root" "${tools[@]}" "linux-headers-$1"
	ln -sf mawk "$root/usr/bin/awk"
	rm -rf "$root"/usr/share/{doc,locale,man,info}
	mv "$root" "$base/root"
}

# Adds the headers of release $2 of archive $1.
add_headers() {
	local package root=$work/headers
	rm -rf "$root" "$work/debs"
	mkdir -p "$root" "$work/debs"
	package=$(APT_CONFIG=$base/$1/apt.conf apt-cache depends "linux-headers-$2" |
		sed -nE 's/^ *Depends: (linux-.*(headers|kbuild)-.*)$/\1/p')
	# shellcheck disable=SC2086 # several
	(cd "$work/debs" && APT_CONFIG=$base/$1/apt.conf apt-get -qq download "linux-headers-$2" $package)
	for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
	if [[ -e $root/lib ]]; then rm -r "${root:?}/lib"; fi
	# The release's own folder comes last: with its Makefile it is all there.
	mv "$root/usr/src/linux-headers-$2" "$work/last"
	cp -an "$root/usr/." "$base/root/usr/"
	mv "$work/last" "$base/root/usr/src/linux-headers-$2"
}

mkdir -p "$base"
work=$(mktemp -d "$base/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
archive debian "$(keys debian-archive-keyring debian-archive-keyring /dev/null)" "$(address Debian http://deb.debian.org/debian)" \
	"bookworm $suite $suite-backports"
archive ubuntu "$(keys ubuntu-archive-keyring ubuntu-keyring "$base/debian/apt.conf")" "$(address Ubuntu http://archive.ubuntu.com/ubuntu)" \
	"noble-updates resolute resolute-updates"
if [[ ! -e $base/root ]]; then make_root "$(release debian newest)"; fi
for one in "${series[@]}"; do
	for archive in debian ubuntu; do
		found=$(release $archive "$one") || continue
		if [[ -z $found ]]; then continue; fi
		if [[ ! -e $base/root/usr/src/linux-headers-$found/Makefile ]]; then
			add_headers $archive "$found"
			echo "kernels: headers of $found"
		fi
		break
	done
done
