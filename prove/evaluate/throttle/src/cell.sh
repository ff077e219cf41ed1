# shellcheck shell=bash
# One cell: tasks that run together on one disk under one rival, each in a cgroup of its own. Set before: $LUC, the
# program; $DEVICE, as loop0; $CGROUPS, where cgroup v2 is mounted; $BLKIO, where the blkio controller of version 1 is
# mounted, or nothing; $WORK, a folder with task.1, task.2 and on, each the commands of a task, and memory.1 and on,
# what memory.max of a task is where it has one; $OUT, for the results; $THROTTLE_OPTIONS, more words for luc throttle.
# What a cell leaves there is NAME.tasks, a line for each task: its number, start and end in seconds, exit status;
# NAME.disk, the disk's figures in sysfs before and after; and NAME.stalls, how long each task waited for I/O, us.
queue=/sys/block/$DEVICE/queue
number=$(cat "/sys/block/$DEVICE/dev")
# Where tasks are put that no coordinator starts.
parent=$CGROUPS/luc-evaluate-tasks

fail() {
	echo "$1" >&2
	exit 1
}

# What a task does inside its cgroup: takes what the rival gives each task, waits for a place where there is a queue,
# and notes when it begins and ends. The first process of each task runs this. enter TASK
write_enter() {
	cat >"$WORK/enter" <<-END
		task=\$1
		cgroup=$CGROUPS\$(sed -n 's/^0:://p' /proc/self/cgroup)
		cgroup=\${cgroup%/luc-thread-*}
		if [ -n "\$TASK_IO" ]; then
		    echo "$number \${TASK_IO#*=}" >"\$cgroup/\${TASK_IO%%=*}" || exit 99
		fi
		if [ -f "$WORK/memory.\$task" ]; then
		    echo +memory >"\${cgroup%/*}/cgroup.subtree_control" || exit 99
		    cat "$WORK/memory.\$task" >"\$cgroup/memory.max" || exit 99
		fi
		if [ -n "$BLKIO" ]; then echo \$\$ >"$BLKIO/luc-evaluate-tasks/\$task/cgroup.procs" || exit 99; fi
		if [ -n "\$SLOTS" ]; then read -r _ <"$WORK/slots"; fi
		start=\$EPOCHREALTIME
		bash "$WORK/task.\$task" >/dev/null
		status=\$?
		echo "\$task \$start \$EPOCHREALTIME \$status" >>"$WORK/done"
		if [ -n "\$SLOTS" ]; then echo >"$WORK/slots"; fi
		if [ -r "\$cgroup/io.pressure" ]; then sed -n 's/^some.*total=//p' "\$cgroup/io.pressure" >>"$WORK/stalls"; fi
		exit \$status
	END
}

# The io controller, where version 2 has it, for all that is below a cgroup. give_io CGROUP
give_io() {
	if grep -qw io "$1/cgroup.controllers"; then echo +io >"$1/cgroup.subtree_control"; fi
}

# set_queue SCHEDULER READ_AHEAD_KIB "SETTING=VALUE ...", of the scheduler or, with a slash, any file below /
set_queue() {
	local setting file
	echo "$1" >"$queue/scheduler" || fail "no scheduler $1"
	# An elevator on a queue of depth 1 may hold 2 requests: nothing to choose from. Disks have 64 and more.
	if [ "$1" != none ]; then echo 64 >"$queue/nr_requests" || fail "no nr_requests"; fi
	echo "$2" >"$queue/read_ahead_kb" || fail "no read-ahead of $2"
	for setting in $3; do
		file=$queue/iosched/${setting%%=*}
		echo "${setting#*=}" >"$file" || fail "no $setting"
	done
}

# start_tasks TASK...: each in a cgroup, all at once
start_tasks() {
	local task started=()
	mkdir -p "$parent"
	give_io "$CGROUPS"
	give_io "$parent"
	for task in "$@"; do
		mkdir "$parent/$task"
		(
			echo $BASHPID >"$parent/$task/cgroup.procs"
			exec bash "$WORK/enter" "$task" 7>&-
		) &
		started+=("$!")
	done
	wait "${started[@]}"
	for task in "$@"; do rmdir "$parent/$task"; done
	rmdir "$parent"
}

# Ends what a cell has started and removes its cgroups, after a signal.
give_up() {
	local group
	if [ -n "$coordinator" ]; then kill -TERM "$coordinator" && wait "$coordinator"; fi
	if [ -d "$parent" ]; then
		echo 1 >"$parent/cgroup.kill"
		wait
		for group in "$parent"/*/ "$parent"; do rmdir "$group"; done
	fi
	if [ -n "$BLKIO" ] && [ -d "$BLKIO/luc-evaluate-tasks" ]; then
		for group in "$BLKIO"/luc-evaluate-tasks/*/ "$BLKIO/luc-evaluate-tasks"; do rmdir "$group"; done
	fi
	exit 130
}
coordinator=
trap give_up TERM INT

# What resctl-demo's side-loader does under pressure, here of I/O: freezes everything for 10 s. It looks once a second.
load_aside() {
	local watcher
	(
		while sleep 1; do
			if [ "$(sed -n 's/some avg10=\([0-9]*\).*/\1/p' "$parent/io.pressure")" -lt 50 ]; then continue; fi
			echo 1 >"$parent/cgroup.freeze"
			sleep 10
			echo 0 >"$parent/cgroup.freeze"
		done
	) 2>/dev/null &
	watcher=$!
	start_tasks "$@"
	kill "$watcher"
}

# coordinate POLICY NAME TASK...: the same under luc throttle
coordinate() {
	local policy=$1 name=$2 task words=()
	shift 2
	give_io "$CGROUPS"
	for task in "$@"; do words+=(--task "bash $WORK/enter $task"); done
	# shellcheck disable=SC2086
	"$LUC" throttle run ${THROTTLE_OPTIONS-} --policy "$policy" --json "$OUT/$name.json" "${words[@]}" >/dev/null 7>&- &
	coordinator=$!
	wait "$coordinator" || fail "luc throttle run --policy $policy failed"
	coordinator=
}

# The same, unthrottled, by luc throttle advise, which says what the throttle would do. advised NAME TASK...
advised() {
	local name=$1 task words=()
	shift
	for task in "$@"; do words+=(--task "bash $WORK/enter $task"); done
	"$LUC" throttle advise --disk "$DEVICE" --json "${words[@]}" >"$OUT/$name.json" 7>&- &
	coordinator=$!
	wait "$coordinator" || fail "luc throttle advise failed"
	coordinator=
}

# learn NAME TIME: has luc throttle measure the disk
learn() {
	set_queue none 128 ''
	"$LUC" throttle learn --for "$2" --json "$MNT" >"$OUT/$1.json" || fail "luc throttle learn failed"
}

# Empties the drive's buffer. A drive reads ahead after the last read, maybe into the file that the next cell reads. It
# drops what it has read ahead when it reads elsewhere. No file lies at the disk's end.
drop_read_ahead() {
	local sectors
	sectors=$(cat "/sys/block/$DEVICE/size")
	dd if="/dev/$DEVICE" of=/dev/null bs=4096 count=1 skip=$((sectors / 8 - 1)) iflag=direct status=none
}

# cell NAME "TASKS" SCHEDULER READ_AHEAD_KIB "SETTINGS" "TASK_IO" "COST" SLOTS POLICY
# TASK_IO is a file of each task's cgroup and its content; COST what io.cost.qos gets, and after a ; io.cost.model;
# SLOTS how many tasks may be at work at a time, or nothing; POLICY that of luc throttle, or advise, or side-loader,
# or nothing.
cell() {
	local name=$1 tasks=$2 cost=$7 task
	set_queue "$3" "$4" "$5"
	export TASK_IO=$6 SLOTS=$8
	rm -f "$WORK/done" "$WORK/slots" "$WORK/stalls"
	write_enter
	if [ -n "$SLOTS" ]; then
		# No task keeps it open: who waits for a place would seem to wait for all that are frozen.
		mkfifo "$WORK/slots"
		exec 7<>"$WORK/slots"
		for _ in $(seq "$SLOTS"); do echo >&7; done
	fi
	if [ -n "$BLKIO" ]; then
		for task in $tasks; do mkdir -p "$BLKIO/luc-evaluate-tasks/$task"; done
	fi
	if [ -n "$cost" ]; then
		echo "$number ${cost#*;}" >"$CGROUPS/io.cost.model" || fail "no io.cost.model"
		echo "$number enable=1 ${cost%%;*}" >"$CGROUPS/io.cost.qos" || fail "no io.cost.qos"
	fi
	if [ -n "$BEFORE" ]; then bash -c "$BEFORE" || fail "the files cannot be put back"; fi
	sync
	echo 3 >/proc/sys/vm/drop_caches
	drop_read_ahead
	cat "/sys/block/$DEVICE/stat" >"$OUT/$name.disk"
	# shellcheck disable=SC2086
	case $9 in
	'') start_tasks $tasks ;;
	side-loader) load_aside $tasks ;;
	advise) advised "$name" $tasks ;;
	*) coordinate "$9" "$name" $tasks ;;
	esac
	cat "/sys/block/$DEVICE/stat" >>"$OUT/$name.disk"
	if [ -f "$WORK/stalls" ]; then cp "$WORK/stalls" "$OUT/$name.stalls"; fi
	if [ -n "$cost" ]; then echo "$number enable=0" >"$CGROUPS/io.cost.qos"; fi
	if [ -n "$SLOTS" ]; then exec 7>&-; fi
	if [ -n "$BLKIO" ]; then
		for task in $tasks; do rmdir "$BLKIO/luc-evaluate-tasks/$task"; done
		rmdir "$BLKIO/luc-evaluate-tasks"
	fi
	cp "$WORK/done" "$OUT/$name.tasks" || fail "no task of $name ended"
	[ "$(wc -l <"$WORK/done")" = "$(echo "$tasks" | wc -w)" ] || fail "not all tasks of $name ended"
	if grep -v ' 0$' "$WORK/done" >&2; then fail "a task of $name failed"; fi
}

# A hundred small files in a folder, cold. make_tree FOLDER COUNT
make_tree() {
	local file
	mkdir "$1" || fail "no $1"
	for file in $(seq "$2"); do
		dd if=/dev/zero of="$1/$file" bs=64k count=1 2>/dev/null || fail "no file in $1"
	done
}
