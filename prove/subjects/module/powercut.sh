# shellcheck shell=bash
# Cuts the power of a lagdisk. MODULE: luc.ko's parameters, or empty; WORDS: of luc powercut.
modprobe ext4
modprobe xfs
insmod lagdisk.ko size_mib=512 flush_ns=2000000 write_ns=50000 read_ns=50000 || exit 2
# shellcheck disable=SC2086 # words
if [ -n "$MODULE" ]; then insmod luc.ko $MODULE || exit 2; fi

# What the module did to journals that come and go: the sum of what was last seen of each.
watch() {
	local folder=/sys/kernel/luc/lagdisk0-8/stats name value
	declare -A last=([holds]=0 [copies]=0) sum=([holds]=0 [copies]=0)
	while [ ! -e /run/stop ]; do
		for name in holds copies; do
			value=0
			{ read -r value <$folder/$name; } 2>/dev/null
			if [ "$value" -lt "${last[$name]}" ]; then sum[$name]=$((sum[$name] + last[$name])); fi
			last[$name]=$value
		done
		usleep 50000
	done
	for name in holds copies; do echo $((sum[$name] + last[$name])) >"$OUT/$name"; done
}
watch &
# shellcheck disable=SC2086 # words
luc powercut --lagdisk /dev/lagdisk0 --json $WORDS >"$OUT/report.json"
status=$?
touch /run/stop
wait
if [ -n "$MODULE" ]; then rmmod luc || exit 2; fi
rmmod lagdisk || exit 2
# 1 is bad news, and an answer, too.
[ $status -le 1 ]
