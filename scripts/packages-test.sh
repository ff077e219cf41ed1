#!/usr/bin/env bash
# Checks packages: their checksums; by lintian and rpmlint; what installing, upgrading, removing and purging them leaves
# in a fresh root of this system's release; and how long `luc demo` takes there from nothing. Root; Debian or Ubuntu.
# All that is made is in memory, and goes with the script.
#
# usage: packages-test.sh DIST_DIR [FIGURES]    FIGURES is a file that gets what was measured as JSON
#
# FIRST_RUNS (1) is how often the first minutes are timed. STEPS (files first life rpm) are those that are made. RELEASE is
# another release, as bullseye; DKMS has no kernel of the older ones to build for.
set -euo pipefail
shopt -s nullglob
export LC_ALL=C
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
dist=$(realpath "$1")
figures=${2:+$(realpath "$2")}
PATH=$PATH:/usr/sbin:/sbin

if [[ $EUID != 0 ]]; then
	echo "packages-test: a fresh root needs root: run it with sudo" >&2
	exit 2
fi
for tool in mmdebstrap lintian unshare dpkg-deb; do
	if ! command -v "$tool" >/dev/null; then
		echo "packages-test: $tool is missing; run \`scripts/setup.sh packages\`" >&2
		exit 2
	fi
done
if ! compgen -G "$dist/luc_*.deb" >/dev/null; then
	echo "packages-test: $dist has no packages; run \`make packages\`" >&2
	exit 2
fi

# All the rest in namespaces of its own: mounts go with the last process, and processes with the first.
if [[ -z ${LUC_PACKAGES_TEST:-} ]]; then
	LUC_PACKAGES_TEST=1 exec unshare --mount --pid --fork --kill-child --mount-proc --propagation slave \
		"${BASH_SOURCE[0]}" "$@"
fi
# shellcheck source=scripts/fresh-root.sh
source "$here/fresh-root.sh"
# The mounts would go by themselves, but the folder below them would not.
trap 'umount --recursive --lazy "$work" 2>/dev/null || true; rmdir "$work"' EXIT

failed=0
lines=()

# Notes a figure: name, JSON.
figure() {
	lines+=("\"$1\": $2")
}

# Says whether something is so; $1 is the status.
verdict() {
	if [[ $1 == 0 ]]; then
		echo "ok: $2"
	else
		echo "FAILED: $2"
		failed=1
	fi
}

# The words of standard input, a line each, as a JSON list.
json_list() {
	awk 'BEGIN { printf "[" } { gsub(/["\\]/, "\\\\&"); printf "%s\"%s\"", (NR > 1 ? ", " : ""), $0 } END { printf "]" }'
}

check_files() {
	local status=0 tags
	(cd "$dist" && sha256sum --quiet -c SHA256SUMS) || status=1
	verdict $status "checksums"
	tags=$(lintian --no-cfg --allow-root --fail-on none "$dist"/*.deb)
	[[ -z $tags ]] && status=0 || status=1
	verdict $status "lintian says nothing${tags:+: $tags}"
	figure lintian "$(printf '%s' "$tags" | json_list)"
	if command -v rpmlint >/dev/null && compgen -G "$dist/*.rpm" >/dev/null; then
		tags=$(rpmlint --config "$here/../packaging/rpm/rpmlint.toml" "$dist"/*.rpm | grep -E ': [EW]: ' || true)
		[[ -z $tags ]] && status=0 || status=1
		verdict $status "rpmlint says nothing${tags:+: $tags}"
		figure rpmlint "$(printf '%s' "$tags" | json_list)"
	fi
	figure bytes "{$(cd "$dist" && stat -c '"%n": %s' -- *.deb *.rpm *.tar.xz | paste -sd,)}"
}

# Seconds since an earlier $EPOCHREALTIME.
since() {
	awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $1 }"
}

# From a root that has nothing of luc, not even lists of packages, to the demo's last line.
first_minutes() {
	local begun updated installed status run lost runs=()
	for ((run = 0; run < ${FIRST_RUNS:-1}; run++)); do
		status=0
		fresh_root
		cp "$dist"/luc_*.deb "$root/tmp/"
		begun=$EPOCHREALTIME
		inside apt-get update -qq
		updated=$EPOCHREALTIME
		inside sh -c 'apt-get install -y -qq /tmp/luc_*.deb >/tmp/apt.log 2>&1' || status=1
		installed=$EPOCHREALTIME
		inside luc demo --json >"$work/demo.json" 2>"$work/demo.log" || status=1
		runs+=("{\"update_s\": $(awk "BEGIN { printf \"%.1f\", $updated - $begun }"), \
\"install_s\": $(awk "BEGIN { printf \"%.1f\", $installed - $updated }"), \"demo_s\": $(since "$installed"), \
\"total_s\": $(since "$begun"), \"demo\": $(demo_figures)}")
		lost=$(left_behind)
		[[ -z $lost ]] || status=1
		verdict $status "apt-get update, apt-get install and luc demo, in $(since "$begun") s${lost:+; left: $lost}"
		if [[ $status != 0 ]]; then cat "$root/tmp/apt.log" "$work/demo.log"; fi
	done
	figure first "[$(printf '%s\n' "${runs[@]}" | paste -sd,)]"
}

# The demo's ratio and power cuts, as JSON.
demo_figures() {
	if [[ -s $work/demo.json ]]; then
		awk '/"calls_per_s"/ { inside = 1 }
			inside && /"(ratio|low|high)": [0-9]/ { gsub(/[", ]/, ""); split($0, part, ":"); seen[part[1]] = part[2] }
			/"mean_latency_us"/ { inside = 0 }
			/"(acknowledged|lost|torn)":/ { gsub(/[", ]/, ""); split($0, part, ":"); seen[part[1]] = part[2] }
			END { for (name in seen) printf "%s\"%s\": %s", (n++ ? ", " : "{"), name, seen[name]; print (n ? "}" : "null") }' \
			"$work/demo.json"
	else
		echo null
	fi
}

# What the demo has left: mounts below the root and files of running things.
left_behind() {
	grep -F "$root/run/luc" /proc/self/mounts || true
	find "$root/run/luc" -mindepth 2 2>/dev/null || true
	losetup -a | grep -F "$root/" || true
}

# Installs, upgrades, removes and purges, and compares the root with what it was before.
life() {
	local step status left all=() needed architecture kernel
	architecture=$(dpkg --print-architecture)
	fresh_root
	cp "$dist"/*.deb "$root/tmp/"
	next_version
	inside apt-get update -qq
	# What they need is there before, so that only their own files differ.
	inside sh -c "apt-get install -s --no-install-recommends /tmp/luc*_${version}_*.deb" |
		sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -v '^luc' >"$work/needed"
	readarray -t needed <"$work/needed"
	# The kernel for which DKMS builds.
	inside apt-get install -y -qq --no-install-recommends "${needed[@]}" linux-headers-"$architecture" \
		>"$work/apt.log" 2>&1
	# As a kernel's package does.
	for kernel in "$root"/lib/modules/*; do
		inside depmod "${kernel##*/}" 2>/dev/null
	done
	snapshot >"$work/before"
	for step in install upgrade remove install purge; do
		status=0
		case $step in
		install) inside sh -c "dpkg -i /tmp/luc*_${version}_*.deb" >"$work/$step.log" 2>&1 || status=1 ;;
		upgrade) inside sh -c "dpkg -i /tmp/luc*_${version}+next_*.deb" >"$work/$step.log" 2>&1 || status=1 ;;
		*) inside dpkg "--$step" luc-dbgsym luc-dkms luc >"$work/$step.log" 2>&1 || status=1 ;;
		esac
		verdict $status "dpkg $step"
		if [[ $status != 0 ]]; then tail -n 20 "$work/$step.log"; fi
		case $step in
		install | upgrade)
			inside sh -c 'luc --version && luc run --check -- true && test -s /usr/share/man/man1/luc-run.1.gz &&
				dkms status -m luc' >"$work/installed" || status=1
			grep -q ': installed$' "$work/installed" || status=1
			verdict $status "what was installed works: $(paste -sd';' "$work/installed")"
			;;
		*)
			snapshot >"$work/after"
			left=$(diff "$work/before" "$work/after" | sed -n 's/^[<>] //p' || true)
			# What dpkg keeps of a removed package that has something to do at a purge.
			if [[ $step == remove ]]; then
				left=$(grep -vE '/var/lib/dpkg/(info/luc\.(list|postrm)|status)( |$)|/var/lib/dpkg/info( |$)' <<<"$left" || true)
			fi
			[[ -z $left ]] || status=1
			verdict $status "nothing is left after $step${left:+: $left}"
			all+=("{\"step\": \"$step\", \"left\": $(printf '%s' "$left" | json_list)}")
			;;
		esac
	done
	figure life "[$(printf '%s\n' "${all[@]}" | paste -sd,)]"
}

# Makes packages of a later version beside the others in the root.
next_version() {
	local package
	version=$(dpkg-deb -f "$(compgen -G "$dist/luc_*.deb")" Version)
	for package in "$root"/tmp/*.deb; do
		dpkg-deb -R "$package" "$work/next"
		sed -i -E "/^(Version|Depends):/s/${version//./\\.}/$version+next/" "$work/next/DEBIAN/control"
		dpkg-deb --root-owner-group -Znone --build "$work/next" "${package/_${version}_/_${version}+next_}" >/dev/null
		rm -r "$work/next"
	done
}

# All rpm packages into an empty root, and out of it.
rpm_life() {
	local status=0 left
	if ! command -v rpm >/dev/null || ! compgen -G "$dist/*.rpm" >/dev/null; then return; fi
	mkdir -p "$work/rpm"
	rpm --root "$work/rpm" --initdb 2>/dev/null
	# Debian's database does not know what Fedora's packages would bring, and nothing is there to run scripts.
	local any=(--force-debian --root "$work/rpm" --nodeps --noscripts)
	rpm -i "${any[@]}" --nosignature --ignorearch "$dist"/*.rpm && "$work/rpm/usr/bin/luc" --version >/dev/null || status=1
	rpm -U "${any[@]}" --nosignature --ignorearch --replacepkgs "$dist"/*.rpm || status=1
	rpm -e "${any[@]}" luc-debuginfo luc-dkms luc || status=1
	left=$(find "$work/rpm" ! -type d ! -path '*/rpm/*' -o -name '*luc*' | grep -v "^$work/rpm\$" || true)
	[[ -z $left ]] || status=1
	verdict $status "rpm installs, replaces and erases${left:+; left: $left}"
	figure rpm_left "$(printf '%s' "$left" | json_list)"
}

steps=" ${STEPS:-files first life rpm} "
if [[ $steps == *" files "* ]]; then check_files; fi
make_base
figure release "\"$release\""
figure base_bytes "$(du -sb "$base" | cut -f1)"
if [[ $steps == *" first "* ]]; then first_minutes; fi
if [[ $steps == *" life "* ]]; then life; fi
if [[ $steps == *" rpm "* ]]; then rpm_life; fi
if [[ -n $figures ]]; then
	printf '{%s}\n' "$(printf '%s\n' "${lines[@]}" | paste -sd,)" >"$figures"
fi
exit $failed
