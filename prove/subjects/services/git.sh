#!/usr/bin/env bash
# git's daemon: eight clients that push commit after commit of 120 small files, each to a repository of its own. A push of
# 100 objects or more is kept as a pack, which git synchronizes with its settings as they are shipped; smaller ones become
# loose objects, which it does not.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
pushes=${SERVICE_WORK:-20}
port=29418
# No settings but git's own.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

# A stream for `git fast-import`: commits 1 and on, branch N at commit N.
history() {
	local number file
	for ((number = 1; number <= pushes; number++)); do
		printf 'commit refs/heads/%s\ncommitter a <a@example.org> %s +0000\ndata 0\n' "$number" "$number"
		if ((number > 1)); then printf 'from refs/heads/%s\n' "$((number - 1))"; fi
		for ((file = 0; file < 120; file++)); do
			printf 'M 644 inline %s\ndata <<END\nclient %s, commit %s, file %s\nEND\n' "$file" "$1" "$number" "$file"
		done
	done
}

push() {
	local number
	for ((number = 1; number <= pushes; number++)); do
		git -C "$folder/client-$1" push --quiet "git://127.0.0.1:$port/$1" "refs/heads/$number:refs/heads/main"
	done
}

case $goal in
prepare)
	for ((client = 1; client <= clients; client++)); do
		git init --quiet --bare "$folder/client-$client"
		history "$client" | git -C "$folder/client-$client" fast-import --quiet
	done
	;;
run)
	rm -rf "$folder/served"
	for ((client = 1; client <= clients; client++)); do
		git init --quiet --bare --initial-branch=main "$folder/served/$client"
	done
	serve 1 /usr/lib/git-core/git-daemon --base-path="$folder/served" --export-all --enable=receive-pack --reuseaddr \
		--listen=127.0.0.1 --port="$port" "$folder/served" 2>"$folder/log"
	await git ls-remote "git://127.0.0.1:$port/1"
	drive push
	stop_all
	no_errors '(fatal|error):' "$folder/log"
	for ((client = 1; client <= clients; client++)); do
		found=$(git -C "$folder/served/$client" rev-list --count --objects main)
		git -C "$folder/served/$client" fsck --full >/dev/null
		if ((found != pushes * 122)); then
			echo "$0: repository $client has $found objects" >&2
			exit 1
		fi
	done
	;;
esac
