# shellcheck shell=bash
# The report of `luc faults WORDS` with or without luc.ko.
modprobe ext4 && modprobe loop && modprobe fuse || exit 2
mount -t tmpfs tmpfs /dev/shm 2>/dev/null || { mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm; }
case $WORDS in *kernel*) insmod /root/luc.ko || exit 2 ;; esac
# shellcheck disable=SC2086 # words
luc faults --json $WORDS >"$OUT/report.json"
# 1 is bad news, and an answer, too.
[ $? -le 1 ]
