# shellcheck shell=bash
# Fresh roots of this system's release, or of that in RELEASE, in memory. To be sourced by a script that has a mount namespace of its own.

work=$(mktemp -d)
base=$work/base
root=$work/root
release=${RELEASE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}

# Makes the smallest system that has apt, as the distribution's own containers are.
make_base() {
	mount -t tmpfs -o mode=755 luc-packages "$work"
	mmdebstrap --quiet --variant=minbase "$release" "$base"
	# Which packages exist is a part of what a first user must fetch.
	rm -rf "$base"/var/lib/apt/lists/* "$base"/var/cache/apt/*.bin "$base"/var/cache/apt/archives/*.deb
	cp -L /etc/resolv.conf "$base/etc/resolv.conf"
}

# Makes $root a root like $base, in place of an earlier one.
fresh_root() {
	if mountpoint -q "$root"; then
		umount --recursive "$root"
	fi
	rm -rf "$work/changes" "$work/overlay"
	mkdir -p "$root" "$work/changes" "$work/overlay"
	mount -t overlay -o "lowerdir=$base,upperdir=$work/changes,workdir=$work/overlay" luc-packages "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs -o mode=755 run "$root/run"
	mount -t tmpfs -o mode=1777 tmp "$root/tmp"
}

# Runs a command in $root.
inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

# Lists all that is in $root: name, kind, mode, owner, and sums of files; but for what apt and dpkg write for themselves.
snapshot() {
	(
		cd "$root" || exit
		find . -xdev -not '(' -path './var/log/*' -o -path './var/cache/apt/*' -o -path './var/lib/apt/*' \
			-o -path './var/lib/dpkg/*-old' -o -path './var/lib/dpkg/lock*' -o -path './var/lib/dpkg/triggers/*' \
			-o -path './var/cache/ldconfig/*' ')' -printf '%p %y %m %u:%g %l\n' | sort
		find . -xdev -type f -not '(' -path './var/log/*' -o -path './var/cache/*' -o -path './var/lib/apt/*' \
			-o -path './var/lib/dpkg/*-old' -o -path './var/lib/dpkg/lock*' -o -path './var/lib/dpkg/triggers/*' ')' \
			-exec sha256sum {} + | sort -k2
	)
}
