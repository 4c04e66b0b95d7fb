#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The benchmark's module: each kind of work over the device, in both contexts, for
# a moment; and what it says to nonsense.
#
# shellcheck disable=SC2317 # check calls the functions by their names
set -euo pipefail
. "$(dirname "$0")/lib.sh"

RUN=/sys/kernel/debug/ndk_bench/run

# measure WORD...: the number of operations that were done.
measure() {
	local answer
	exec 8<>"$RUN"
	printf '%s' "$*" >&8 || { exec 8>&-; return 1; }
	read -r answer <&8
	exec 8>&-
	answer=${answer#ops=}
	echo "${answer%% *}"
}

# does WORD...: something was done in a twentieth of a second; on a machine that had other
# things to do, in more, a minute at a time.
does() {
	local ops ms
	for ms in 50 1000 10000 60000 60000 60000 60000 60000; do
		ops=$(measure "dev=$DEVICE addr=$ADDRESS ${*/ms=50/ms=$ms}") || return
		((ops == 0)) || return 0
	done
	return 1
}

# counts OPS WORD...: all of them were done, and no other.
counts() {
	local ops
	ops=$(measure "dev=$DEVICE addr=$ADDRESS ops=$*") && ((ops == $1))
}

# declines WORD...: there is an error instead of an answer.
declines() { ! measure "dev=$DEVICE addr=$ADDRESS $*"; }

device_up
modprobe ndk_bench
defer modprobe -r ndk_bench
for poll in softirq workqueue; do
	for qps in 1 2; do
		shape="qps=$qps poll=$poll ms=50"
		check "ping-pong, $shape" does "work=pingpong $shape"
		check "send, $shape" does "work=send $shape"
		check "send in batches, $shape" does "work=send batch=32 $shape"
		check "register, send, invalidate, $shape" does "work=reg_send_inv $shape"
		check "register, invalidate, $shape" does "work=reg_local_inv $shape"
		check "write, $shape" does "work=write size=65536 $shape"
		check "read, $shape" does "work=read size=65536 $shape"
	done
done
check "write of 1 MiB" does "work=write size=1048576 ms=50"
check "read of 1 MiB" does "work=read size=1048576 ms=50"
check "memcpy" does "work=memcpy size=4096 ms=50"
check "so many sends" counts 1280 "work=send"
check "so many writes" counts 320 "work=write size=4096 qps=2"

check "no such work" declines "work=dance ms=50"
check "no such device" declines "work=send ms=50 dev=nosuch"
check "a foreign address" declines "work=send ms=50 addr=192.0.2.1"
check "no time" declines "work=send"
check "too large" declines "work=write size=1048577 ms=50"
check "a batch of writes" declines "work=write batch=2 ms=50"
check "no number" declines "work=send ms=x"
check "unload" modprobe -r ndk_bench
check "no resources left" wait_for 90 no_resources
finish
