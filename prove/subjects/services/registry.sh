#!/usr/bin/env bash
# A registry of container images: one server, eight clients that upload layer after layer (2 KiB), each to an image of its
# own.
# shellcheck source=prove/subjects/services/common.sh
source "$(dirname "$0")/common.sh"
layers=${SERVICE_WORK:-100}
port=25000
printf -v filling '%02000d' 0

# Layer $2 of client $1, into `layer`.
layer() {
	layer="client $1, layer $2 $filling"$'\n'
}

upload() {
	local number digest
	draw_thinks "$1" "$layers"
	connect "$port"
	mapfile -t digests <"$folder/digests-$1"
	for ((number = 0; number < layers; number++)); do
		layer "$1" "$number"
		digest=sha256:${digests[number]}
		think "$number"
		http POST "/v2/image$1/blobs/uploads/" '' 202
		http PUT "${location#http://*:"$port"}&digest=$digest" "$layer" 201
	done
}

case $goal in
prepare)
	for ((client = 1; client <= clients; client++)); do
		for ((number = 0; number < layers; number++)); do
			layer "$client" "$number"
			printf '%s' "$layer" | sha256sum | cut -d ' ' -f 1
		done >"$folder/digests-$client"
	done
	cat >"$folder/config.yml" <<-END
		version: 0.1
		log:
		  level: error
		storage:
		  filesystem:
		    rootdirectory: $folder/data
		http:
		  addr: 127.0.0.1:$port
	END
	;;
run)
	rm -rf "$folder/data"
	serve 1 docker-registry serve "$folder/config.yml" >"$folder/log" 2>&1
	await listens "$port"
	drive upload
	stop_all
	no_errors 'level=(error|fatal|panic)|"level":"(error|fatal|panic)"' "$folder/log"
	# What is there must be what its name says.
	found=$(cd "$folder/data/docker/registry/v2/blobs/sha256" && find . -name data -exec sha256sum {} + |
		awk '{ split($2, parts, "/"); if (parts[3] == $1) good++ } END { print good + 0 }')
	if ((found != clients * layers)); then
		echo "$0: $found layers" >&2
		exit 1
	fi
	;;
esac
