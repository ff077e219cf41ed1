#!/usr/bin/busybox sh
# shellcheck shell=dash
# The guest's first process. Runs /luc/script and sends what came of it to the host: over a virtio
# port, as a cpio archive of /run/luc with the files `status`, `kernel.log`, `output` and `files/`.
# In virtual time everything that runs beside the guest's clock (virtio) starts after the script.
/usr/bin/busybox --install -s /usr/bin
export PATH=/luc/bin:/usr/bin:/usr/sbin HOME=/root LANG=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs -o size=75% tmpfs /tmp
echo /usr/bin/modprobe >/proc/sys/kernel/modprobe
mkdir -p /dev/pts /dev/shm /run/luc/files
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
ip link set lo up 2>/dev/null

# MODE, and what the caller wants in the script's environment.
# shellcheck source=/dev/null
. /luc/environment
export OUT=/run/luc/files

virtio() {
	modprobe virtio_pci
	modprobe virtio_console
	modprobe virtio_blk
	for _ in $(seq 100); do
		if [ -e /dev/vport0p1 ] && [ -e /dev/vport0p2 ]; then return; fi
		usleep 20000
	done
	echo "luc-vm: no port to the host" >/dev/console
}

run() {
	cd /root || return
	bash /luc/script </dev/null 2>&1
	echo $? >/run/luc/status
}

if [ "$MODE" = function ]; then
	virtio
	dmesg -n 7
	run >/dev/vport0p2
else
	run >/run/luc/output
	dmesg >/run/luc/kernel.log
	virtio
fi
if [ ! -e /run/luc/kernel.log ]; then dmesg >/run/luc/kernel.log; fi
cd /run/luc && find . | cpio -o -H newc 2>/dev/null >/dev/vport0p1
poweroff -f
