# shellcheck shell=bash
# Finds a Rust that is new enough. To be sourced.

# The oldest Rust that builds LUC; the same as rust-version in Cargo.toml.
rust_minor_needed=88

# Whether the folder $1 has a cargo and a rustc, both new enough.
is_toolchain() {
	local tool version
	for tool in cargo rustc; do
		version=$("$1/$tool" --version 2>/dev/null) || return 1
		[[ $version =~ \ 1\.([0-9]+)\. ]] || return 1
		((BASH_REMATCH[1] >= rust_minor_needed)) || return 1
	done
}

# Prints the folder of the first such pair: in PATH, rustup's, or Ubuntu's versioned packages.
find_toolchain() {
	local folder folders=()
	IFS=: read -ra folders <<<"$PATH"
	while read -r folder; do
		folders+=("$folder")
	done < <(printf '%s\n' "${CARGO_HOME:-$HOME/.cargo}/bin" /usr/lib/rust-1.*/bin | sort -rV)
	for folder in "${folders[@]}"; do
		if is_toolchain "$folder"; then
			printf '%s\n' "$folder"
			return
		fi
	done
	return 1
}
