# shellcheck shell=bash
# A client beside batch tasks, each in a cgroup of its own, after cell.sh. Set before: what that wants; $WORK/client, the
# client's commands; $WORK/batch.1, $WORK/batch.2 and on, those of the batch tasks, which do not end by themselves.
# What a run leaves in $OUT is NAME.client, what the client printed; NAME.before and NAME.after, when it began and ended
# and the disk's counters then; and under luc throttle NAME.json, what that printed.
disk_number=$(cat "/sys/block/$DEVICE/dev")
tasks=$CGROUPS/luc-evaluate-tasks
# The batch is at work before the client begins.
ahead_s=1

# The first process of each task. What is in IO is written into a file of its cgroup, or is its class for ionice. The
# client ends the others.
# usage: enter client|batch.N
write_task() {
	cat >"$WORK/enter" <<-END
		cgroup=$CGROUPS\$(sed -n 's/^0:://p' /proc/self/cgroup)
		if [ "\$1" = client ]; then io=\$CLIENT_IO; else io=\$BATCH_IO; fi
		case "\$io" in
		"") ;;
		class=*) ionice -c "\${io#*=}" -p "\$\$" || exit 99 ;;
		*) echo "$disk_number \${io#*=}" >"\$cgroup/\${io%%=*}" || exit 99 ;;
		esac
		if [ "\$1" != client ]; then
		    echo "\$cgroup" >"$WORK/cgroup.\$1"
		    exec bash "$WORK/\$1" >/dev/null
		fi
		sleep $ahead_s
		echo "\$EPOCHREALTIME" \$(cat /sys/block/$DEVICE/stat) >"$OUT/\$NAME.before"
		bash "$WORK/client" >"$OUT/\$NAME.client"
		status=\$?
		echo "\$EPOCHREALTIME" \$(cat /sys/block/$DEVICE/stat) >"$OUT/\$NAME.after"
		cat "$WORK"/cgroup.* 2>/dev/null | while read -r other; do echo 1 >"\$other/cgroup.kill"; done
		exit \$status
	END
}

# start TASK...: each in a cgroup, all at once
start() {
	local task started=()
	mkdir -p "$tasks"
	give_io "$CGROUPS"
	give_io "$tasks"
	for task in "$@"; do
		mkdir "$tasks/$task"
		(
			echo $BASHPID >"$tasks/$task/cgroup.procs"
			exec bash "$WORK/enter" "$task"
		) &
		started+=("$!")
	done
	# Those that the client ends have failed.
	wait "${started[@]}"
	for task in "$@"; do
		while ! rmdir "$tasks/$task" 2>/dev/null; do sleep 0.01; done
	done
	rmdir "$tasks"
}

# start_throttled "OPTIONS" TASK...: the same under luc throttle
start_throttled() {
	local options=$1 task words=() status=0
	shift
	give_io "$CGROUPS"
	for task in "$@"; do
		if [ "$task" = client ]; then words+=(--protect); else words+=(--task); fi
		words+=("bash $WORK/enter $task")
	done
	# shellcheck disable=SC2086
	"$LUC" throttle run $options --json "$OUT/$NAME.json" "${words[@]}" >/dev/null || status=$?
	# 1: those that the client ends have failed.
	if [ "$status" -gt 1 ]; then fail "luc throttle run $options failed"; fi
}

# beside NAME BATCH SCHEDULER READ_AHEAD_KIB "SETTINGS" "CLIENT_IO" "BATCH_IO" "COST" "OPTIONS"
# BATCH is the number of batch tasks; CLIENT_IO and BATCH_IO a file of a task's cgroup and its content, or class=N; COST
# as in cell.sh; OPTIONS those of luc throttle run, or nothing without it.
beside() {
	local cost=$8 task all=()
	export NAME=$1 CLIENT_IO=$6 BATCH_IO=$7
	set_queue "$3" "$4" "$5"
	rm -f "$WORK"/cgroup.*
	write_task
	for task in $(seq "$2"); do all+=("batch.$task"); done
	all+=(client)
	if [ -n "$cost" ]; then
		echo "$disk_number ${cost#*;}" >"$CGROUPS/io.cost.model" || fail "no io.cost.model"
		echo "$disk_number enable=1 ${cost%%;*}" >"$CGROUPS/io.cost.qos" || fail "no io.cost.qos"
	fi
	sync
	echo 3 >/proc/sys/vm/drop_caches
	if [ -n "$9" ]; then start_throttled "$9" "${all[@]}"; else start "${all[@]}"; fi
	if [ -n "$cost" ]; then echo "$disk_number enable=0" >"$CGROUPS/io.cost.qos"; fi
	[ -s "$OUT/$NAME.client" ] || fail "the client of $NAME failed"
}
