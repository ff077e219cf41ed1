# shellcheck shell=bash
# Packages for Debian and Ubuntu. To be sourced by scripts/packages.sh, whose variables and functions it uses.
# shellcheck disable=SC2154

debian_version=$version-$revision
architecture=$(dpkg --print-architecture)

# Prints what the programs in $1 need of the system. Of glibc that is the latest version that a symbol of theirs has:
# dpkg-shlibdeps would ask for 2.34, where functions of libpthread came into libc.
depends() {
	local glibc
	glibc=$(cd "$1/usr" && objdump -T "${binaries[@]}" | grep -o 'GLIBC_2[0-9.]*' | sort -uV | tail -n 1)
	mkdir -p "$work/shlibs/debian"
	printf 'Source: luc\n\nPackage: luc\nArchitecture: any\n' >"$work/shlibs/debian/control"
	# By this folder it knows the root of a package.
	mkdir -p "$1/DEBIAN"
	(cd "$work/shlibs" && dpkg-shlibdeps -O --warnings=1 "${binaries[@]/#/-e$1/usr/}") |
		sed -n "s/^shlibs:Depends=//p" | sed "s/libc6 ([^)]*)/libc6 (>= ${glibc#GLIBC_})/"
}

# Fills in control file $1 for what is in $2. DEPENDS and BUILD_IDS are further values.
control() {
	local size
	# As dpkg-gencontrol counts: files in whole KiB, and one for each folder and link.
	size=$(find "$2" -mindepth 1 -path "$2/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '1\n' |
		awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
	mkdir -p "$2/DEBIAN"
	sed -e "s|@VERSION@|$debian_version|g" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@MAINTAINER@|$maintainer|" \
		-e "s|@SIZE@|$size|" -e "s|@DEPENDS@|${DEPENDS:-}|" -e "s|@BUILD_IDS@|${BUILD_IDS:-}|" \
		"$1" >"$2/DEBIAN/control"
}

# Prints the changelog of the package.
changelog() {
	printf 'luc (%s) unstable; urgency=medium\n\n' "$debian_version"
	printf '  * LUC %s of %s. What changed is in changelog.gz.\n\n' "$version" "$COMMIT"
	printf ' -- %s  %s\n' "$maintainer" "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
}

# Adds what the policy wants of each package, and packs folder $1 as package $2 of architecture $3.
pack() {
	local doc=$1/usr/share/doc/$2
	if [[ ! -L $doc ]]; then
		mkdir -p "$doc"
		cp packaging/debian/copyright "$doc/copyright"
		changelog | gzip -9n >"$doc/changelog.Debian.gz"
		mkdir -p "$1/usr/share/lintian/overrides"
		sed "s|@PACKAGE@|$2|" packaging/debian/lintian-overrides >"$1/usr/share/lintian/overrides/$2"
	fi
	control "packaging/debian/control$4" "$1"
	(cd "$1" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	set_times "$1"
	dpkg-deb --root-owner-group -Zxz "-z$compression" --build "$1" "$out/$2_${debian_version}_$3.deb" >/dev/null
}

pack_debian() {
	local luc=$work/deb-luc dkms=$work/deb-dkms debug=$work/deb-debug script
	stage "$luc"
	mkdir -p "$luc/usr/share/zsh"
	mv "$luc/usr/share/zsh/site-functions" "$luc/usr/share/zsh/vendor-completions"
	for script in postinst prerm postrm; do
		mkdir -p "$luc/DEBIAN"
		install -m 755 "packaging/debian/luc.$script" "$luc/DEBIAN/$script"
	done
	DEPENDS=$(depends "$luc") pack "$luc" luc "$architecture" ""

	stage_module "$dkms"
	mkdir -p "$dkms/DEBIAN"
	for script in postinst prerm; do
		sed "s|@MODULE_VERSION@|$module_version|g" "packaging/debian/luc-dkms.$script" >"$dkms/DEBIAN/$script"
		chmod 755 "$dkms/DEBIAN/$script"
	done
	pack "$dkms" luc-dkms all .dkms

	mkdir -p "$debug/usr/share/doc"
	ln -s luc "$debug/usr/share/doc/luc-dbgsym"
	BUILD_IDS=$(stage_debug "$debug" | paste -sd' ') pack "$debug" luc-dbgsym "$architecture" .dbgsym
}
