# shellcheck shell=bash
# Packages that apt fetches and that are unpacked but never installed: of the backports of this machine's own
# distribution, or of another architecture. To be sourced.
#
# The package sources of this machine stay as they are: apt gets lists of its own.

# The options of apt for the backports, at the address from which this machine has its packages, with lists in folder $1:
# in the array `apt_options`.
apt_of_backports() {
	local folder=$1 codename uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # apt's own variable
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' "Codename: $codename" | sed -n 1p) || return 1
	if [[ -z $codename || -z $uri ]]; then return 1; fi
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	{
		printf 'Types: deb deb-src\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$uri" "$codename"
		if [[ -e $keyring ]]; then echo "Signed-By: $keyring"; fi
	} >"$folder/backports.sources"
	apt_options=(
		-qq -o Dir::Etc::sourcelist="$folder/backports.sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$folder/lists"
		-o Dir::Cache="$folder/cache"
		# As root, apt would hand the download to a user who may not write here.
		-o APT::Sandbox::User=root
	)
	apt-get "${apt_options[@]}" update
}

# Fetches packages into folder $1 and unpacks them to folder $2.
apt_unpack() {
	local folder=$1 root=$2 package
	shift 2
	(cd "$folder" && apt-get "${apt_options[@]}" download "$@") || return 1
	for package in "$folder"/*.deb; do
		dpkg-deb -x "$package" "$root" || return 1
		rm "$package"
	done
}

# The options of apt that have the packages of another architecture $2, with lists of their own in folder $1: in the array
# `apt_options`.
apt_of_architecture() {
	local folder=$1 architecture=$2
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	: >"$folder/status"
	apt_options=(
		-qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::State::lists="$folder/lists"
		-o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" -o APT::Sandbox::User=root
	)
	apt-get "${apt_options[@]}" update
}
