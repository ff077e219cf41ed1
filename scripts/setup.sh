#!/usr/bin/env bash
# Installs what building, testing and checking LUC needs and this machine lacks. Debian and Ubuntu,
# as root; otherwise says what is missing and ends with status 2. Does nothing if nothing is missing.
#
# usage: setup.sh [build|test|test-all|lint|evaluate|packages|arm64]    only what this target needs (default: test and lint)
set -euo pipefail
# shellcheck source=scripts/toolchain.sh
source "$(dirname "${BASH_SOURCE[0]}")/toolchain.sh"
goal=${1:-all}

# mkfs and losetup are in the PATH of no one but root.
PATH=$PATH:/usr/sbin:/sbin

# Adds package $2 to the missing ones unless command $1 is there.
missing=()
need() {
	command -v "$1" >/dev/null || missing+=("$2")
}

need_system() {
	need make make
	need cc gcc
	if [[ ! -e /usr/include/stdio.h ]]; then missing+=(libc6-dev); fi
	if [[ ! -e /etc/ssl/certs/ca-certificates.crt && ! -d /etc/pki ]]; then missing+=(ca-certificates); fi
	need mkfs.ext4 e2fsprogs
	need mkfs.xfs xfsprogs
	need mkfs.btrfs btrfs-progs
	need losetup mount
	need setpriv util-linux
	need ip iproute2
	need sqlite3 sqlite3
	# For the recorder: its programs are compiled by clang; libbpf needs libelf and zlib.
	need clang clang
	need pkg-config pkg-config
	if [[ ! -e /usr/include/libelf.h ]]; then missing+=(libelf-dev); fi
	if [[ ! -e /usr/include/zlib.h ]]; then missing+=(zlib1g-dev); fi
}

# The services of `make evaluate-services` and `make evaluate-fleet-cost`, and what drives them. Debian's
# Python has its own modules.
need_services() {
	need mariadbd mariadb-server
	if [[ ! -e /usr/lib/dovecot/lmtp ]]; then missing+=(dovecot-lmtpd); fi
	need rabbitmq-server rabbitmq-server
	if [[ ! -d /usr/lib/python3/dist-packages/pika ]]; then missing+=(python3-pika); fi
	if ! compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; then missing+=(postgresql); fi
	need redis-server redis-server
	need redis-benchmark redis-tools
	need etcd etcd-server
	need nats-server nats-server
	need docker-registry docker-registry
	need git git
	# A machine with another mail server keeps that.
	if [[ ! -e /usr/sbin/sendmail ]]; then missing+=(postfix); fi
}

# Services with units of their distribution's own, which tests of `luc enable` start in a machine of their own.
need_units() {
	need redis-server redis-server
	need redis-benchmark redis-tools
	need etcd etcd-server
	need nsenter util-linux
	# Containers that are handed over to lucd.
	need crun crun
	if ! [[ -x /bin/busybox ]]; then missing+=(busybox-static); fi
	if [[ ! -e /lib/systemd/systemd ]]; then missing+=(systemd); fi
}

# Another C library, and what other people's interposers, roots and namespaces are: the gate's library is tried in them.
need_loaders() {
	need musl-gcc musl-tools
	need faketime faketime
	need fakeroot fakeroot
	need eatmydata eatmydata
	need bwrap bubblewrap
	need readelf binutils
}

# What the servers of `make evaluate-fleet-pools`, `make evaluate-fleet-solr` and `make evaluate-fleet-cost` are written
# in. Maven fetches Solr from Maven Central when it is first needed, npm OpenTelemetry from its registry.
need_languages() {
	need javac default-jdk-headless
	need mvn maven
	need go golang-go
	need node nodejs
	need npm npm
	need nginx nginx
	if [[ ! -e /usr/bin/python3 ]]; then missing+=(python3); fi
}

# What makes packages, checks them, and tries them in a fresh root.
need_packaging() {
	need dpkg-deb dpkg
	need dpkg-shlibdeps dpkg-dev
	need objcopy binutils
	need xz xz-utils
	want rpmbuild rpm
	want lintian lintian
	want rpmlint rpmlint
	want mmdebstrap mmdebstrap
	# For zig, which Python's registry brings.
	if ! python3 -c 'import ensurepip' 2>/dev/null; then wanted+=(python3-venv); fi
}

# Installs packages as they ask for it, but starts no service, now or at the next boot: the evaluation
# starts instances of its own.
install_quietly() {
	local policy=/usr/sbin/policy-rc.d before after unit status=0
	if [[ ! -e $policy ]]; then
		printf '#!/bin/sh\n# Of scripts/setup.sh, while it installs.\nexit 101\n' >$policy
		chmod 755 $policy
		# shellcheck disable=SC2064
		trap "rm -f $policy" EXIT
	fi
	before=$(enabled_units || true)
	apt-get install -y -qq --no-install-recommends "$@" >/dev/null || status=$?
	after=$(enabled_units || true)
	for unit in $(comm -13 <(echo "$before") <(echo "$after")); do
		systemctl disable --quiet "$unit" || true
	done
	return "$status"
}

# The services and sockets that start at boot, one a line, sorted.
enabled_units() {
	find /etc/systemd/system/*.wants '(' -name '*.service' -o -name '*.socket' ')' -printf '%f\n' 2>/dev/null |
		sort -u
}

# What builds LUC for 64-bit Arm on a machine of another architecture, and runs it in an emulated machine.
need_arm64() {
	need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	need qemu-system-aarch64 qemu-system-arm
	need readelf binutils
	need depmod kmod
	need xz xz-utils
}

# For the virtual machines (docs/reference/vm.md): without these, tests of them are skipped, so what this machine
# cannot have is left out. Kernels come by `apt-get download` when they are first used.
want_machines() {
	[[ $(uname -m) == x86_64 ]] || return 0
	want qemu-system-x86_64 qemu-system-x86
	want busybox busybox-static
	want xz xz-utils
	want zstd zstd
	want depmod kmod
	# A device-mapper device, on which tests of refusals are.
	want dmsetup dmsetup
	want dkms dkms
	want mkfs.f2fs f2fs-tools
	want mkreiserfs reiserfsprogs
	want_headers 6.1 linux-headers-amd64
	want_headers 6.12 linux-headers-6.12-amd64
}

# Adds package $2 to the wanted ones unless command $1 is there.
want() {
	command -v "$1" >/dev/null || wanted+=("$2")
}

# Adds package $2 to the wanted ones unless headers of a kernel $1 are there.
want_headers() {
	compgen -G "/lib/modules/$1.*/build/Makefile" >/dev/null || wanted+=("$2")
}

# Whether package $1 could be installed.
offers() {
	[[ $(apt-cache policy "$1" 2>/dev/null) == *Candidate:\ [0-9]* ]]
}

# Leaves in `wanted` what this system offers. Ubuntu's kernels have other names: those are left out.
want_offered() {
	local package offered=()
	for package in "${wanted[@]}"; do
		if offers "$package"; then offered+=("$package"); fi
	done
	wanted=("${offered[@]}")
}

# Whether package $1 could be installed in a version >= the Rust that is needed.
offers_rust() {
	local candidate
	candidate=$(apt-cache policy "$1" | awk '/Candidate:/ { print $2 }')
	[[ $candidate =~ ^([0-9]+:)?1\.([0-9]+)\. ]] && ((BASH_REMATCH[2] >= rust_minor_needed))
}

# Prints the suffix of this system's Rust packages: "" (rustc), "-web" (Debian 12), "-1.89" (Ubuntu).
rust_packages() {
	local package
	while read -r package; do
		if offers_rust "$package" && offers_rust "cargo${package#rustc}"; then
			printf '%s\n' "${package#rustc}"
			return
		fi
	done < <(printf 'rustc\nrustc-web\n' && apt-cache pkgnames rustc-1. | sort -rV)
	return 1
}

need_rust() {
	local suffix
	if find_toolchain >/dev/null; then return; fi
	if suffix=$(rust_packages); then
		missing+=("rustc$suffix" "cargo$suffix")
	else
		lacks_rust=true
	fi
}

need_lint_tools() {
	need shellcheck shellcheck
	need python3 python3-minimal
	need clang-format clang-format
	local folder tool suffix components=()
	folder=$(find_toolchain) || folder=
	for tool in rustfmt clippy; do
		if [[ -n $folder ]] && (PATH=$folder:$PATH cargo "${tool/rustfmt/fmt}" --version) >/dev/null 2>&1; then
			continue
		elif [[ -e $folder/rustup ]]; then
			components+=("$tool")
		elif suffix=$(rust_packages); then
			# Debian and Ubuntu say rustfmt-web, rustfmt-1.89, but rust-web-clippy, rust-1.89-clippy.
			if [[ $tool == clippy ]]; then missing+=("rust$suffix-clippy"); else missing+=("rustfmt$suffix"); fi
		fi
	done
	if ((${#components[@]})); then
		echo "setup: rustup component add ${components[*]}"
		"$folder/rustup" component add "${components[@]}"
	fi
}

# cargo-deny checks licences and advisories of dependencies. No distribution packages it, so cargo builds it, in 5.5
# minutes of processor time. The oldest Rust of toolchain.sh builds this version.
cargo_deny="cargo-deny@0.20.2"
install_cargo_deny() {
	local cargo
	cargo=$(dirname "${BASH_SOURCE[0]}")/cargo.sh
	if "$cargo" deny --version >/dev/null 2>&1; then return; fi
	echo "setup: cargo install --locked $cargo_deny, which takes minutes"
	"$cargo" install --locked --quiet "$cargo_deny" ||
		echo "setup: $cargo_deny was not installed, so dependencies are not checked"
}

# cargo-cyclonedx writes the bills of materials of packages. From this version on they are reproducible.
cargo_cyclonedx="cargo-cyclonedx@0.5.9"
install_cargo_cyclonedx() {
	local cargo
	cargo=$(dirname "${BASH_SOURCE[0]}")/cargo.sh
	if "$cargo" cyclonedx --version >/dev/null 2>&1; then return; fi
	echo "setup: cargo install --locked $cargo_cyclonedx, which takes minutes"
	"$cargo" install --locked --quiet "$cargo_cyclonedx"
}

# Installs what no package brings: tools of cargo, more kernels and headers, a newer QEMU.
install_others() {
	case $goal in all | lint) install_cargo_deny ;; esac
	case $goal in
	all | test | test-all)
		"$(dirname "${BASH_SOURCE[0]}")/setup-nextest.sh" >/dev/null
		"$(dirname "${BASH_SOURCE[0]}")/setup-engines.sh" duckdb >/dev/null ||
			echo "setup: DuckDB was not installed, so tests of \`luc fleet export\` are skipped"
		;;
	esac
	if [[ $goal == test-all ]]; then
		"$(dirname "${BASH_SOURCE[0]}")/setup-engines.sh" spark >/dev/null ||
			echo "setup: Spark was not installed, so its test is skipped"
	fi
	if [[ $goal == packages ]]; then
		install_cargo_cyclonedx
		"$(dirname "${BASH_SOURCE[0]}")/setup-zig.sh" >/dev/null ||
			echo "setup: no zig was installed: \`make packages GLIBC=system\` links for this system's glibc"
	fi
	case $goal in arm64 | evaluate) "$(dirname "${BASH_SOURCE[0]}")/setup-arm64.sh" ;; esac
	fetch_headers
	fetch_kernels
	unpack_qemu
}

# A QEMU for guests with several processors in virtual time.
unpack_qemu() {
	case $goal in
	all | test | test-all | evaluate)
		"$(dirname "${BASH_SOURCE[0]}")/setup-vm.sh" ||
			echo "setup: no newer QEMU was unpacked, so guests in virtual time have one processor"
		;;
	esac
}

# Headers of more kernels, for which the modules are only compiled.
fetch_headers() {
	if [[ $goal == test-all ]] && [[ $(uname -m) == x86_64 ]]; then
		"$(dirname "${BASH_SOURCE[0]}")/headers.sh" ||
			echo "setup: headers were not fetched, so the modules are compiled for fewer kernels"
	fi
}

# Kernels of other distributions, and a compiler for their modules.
fetch_kernels() {
	case $goal in
	all | test | test-all | evaluate)
		if [[ $(uname -m) != x86_64 ]]; then return; fi
		"$(dirname "${BASH_SOURCE[0]}")/setup-kernels.sh" ||
			echo "setup: newer kernels were not fetched, so their tests are skipped"
		;;
	esac
}

# Fills `missing` with packages; `lacks_rust` says that no package could bring Rust.
look() {
	missing=() wanted=()
	need_system
	# Tests only: the browser in which they look at the HTML report (Ubuntu has it as a snap only), virtual machines.
	if [[ $goal != lint && $goal != build && $goal != packages && $goal != arm64 ]]; then
		want chromium chromium
		# Packages are packed by tests as well.
		want dpkg-shlibdeps dpkg-dev
		# For what Python's registry brings: the runner of tests, and an engine for SQL.
		if ! python3 -c 'import ensurepip' 2>/dev/null; then missing+=(python3 python3-venv); fi
		need_units
		need_loaders
		want_machines
	fi
	# Spark's.
	if [[ $goal == test-all ]]; then want java default-jre-headless; fi
	lacks_rust=false
	need_rust
	case $goal in
	all | lint) need_lint_tools ;;
	packages) need_packaging ;;
	arm64) need_arm64 ;;
	evaluate)
		need_arm64
		# The recorder's rival, and what the kernel module is stressed with.
		need bpftrace bpftrace
		need stress-ng stress-ng
		# What the engine of Filebench's files is compared with.
		need fio fio
		need_services
		need_languages
		;;
	esac
}

export DEBIAN_FRONTEND=noninteractive
can_install=false
if [[ $EUID == 0 ]] && command -v apt-get >/dev/null; then can_install=true; fi

# Only fresh package lists tell which Rust can be installed.
if $can_install && ! find_toolchain >/dev/null; then
	echo "setup: apt-get update, to look for Rust >= 1.$rust_minor_needed"
	apt-get update -qq
fi
look
if $lacks_rust; then
	echo "setup: needed, but no package here has it: Rust >= 1.$rust_minor_needed; install it by rustup (https://rustup.rs)" >&2
fi
if ((${#missing[@]})) && ! $can_install; then
	echo "setup: missing packages, to be installed as root: ${missing[*]}" >&2
	exit 2
fi
if $lacks_rust; then exit 2; fi
if ((${#wanted[@]})) && ! $can_install; then
	echo "setup: some tests will be skipped without these packages: ${wanted[*]}"
	wanted=()
fi
# Without package lists nothing is known to be offered; they are fetched further down.
if $can_install && offers make; then want_offered; fi
if ((${#missing[@]} + ${#wanted[@]} == 0)); then
	install_others
	exit 0
fi

apt-get update -qq
if ((${#missing[@]})); then
	echo "setup: installing ${missing[*]}"
	install_quietly "${missing[@]}"
fi
want_offered
if ((${#wanted[@]})); then
	echo "setup: installing ${wanted[*]}"
	if ! apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null; then
		echo "setup: not installed, so some tests will be skipped: ${wanted[*]}"
	fi
fi
hash -r
look
if $lacks_rust || ((${#missing[@]})); then
	echo "setup: still missing after apt-get: ${missing[*]:-Rust >= 1.$rust_minor_needed}" >&2
	exit 2
fi
install_others
echo "setup: done"
