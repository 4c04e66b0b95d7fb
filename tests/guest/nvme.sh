#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe over the device, both ends in this kernel: verified I/O in the sizes
# that take different paths, a file system, and what the device tells about
# itself meanwhile.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

make_tree() {
	mkdir "$1"
	cp -a "$(dirname "$0")" "$1/scripts"
	head -c 3000001 /dev/urandom >"$1/random"
	head -c 100000 /dev/zero >"$1/zeroes"
	ln -s random "$1/link"
	mkdir -p "$1/a/b/c"
	seq 20000 >"$1/a/b/c/numbers"
}

# expect_resource KIND LEAST
expect_resource() {
	local n
	n=$(resources "$1")
	if ((n >= $2)); then ok "resource $1"; else not_ok "resource $1" "$n listed, at least $2 expected"; fi
}

device_up
target_up 64
check "connect" nvme_connect -i 2
defer host_down
wait_for 20 namespace
DISK=$(namespace)

before=$(counter_sum 2>/dev/null || echo none)
check "verify 4 KiB random" fio_verify r4k "$DISK" randwrite 4k 1m
check "verify 64 KiB sequential" fio_verify s64k "$DISK" write 64k 4m
check "verify 1 MiB sequential" fio_verify s1m "$DISK" write 1m 8m
check "verify mixed" fio_verify mixed "$DISK" randrw 4k 1m --bsrange=4k-64k --bs_unaligned=0 --blockalign=4k

# Admin queue and two I/O queues, at both ends.
expect_resource qp 6
expect_resource cq 2
expect_resource pd 1
expect_resource mr 6
expect_resource cm_id 6
after=$(counter_sum 2>/dev/null || echo none)
if [[ $before == none || $after == none ]]; then
	not_ok "statistic" "no hw_counters"
elif ((after > before)); then
	ok "statistic"
else
	not_ok "statistic" "counters stand still at $after"
fi
check "statistic show" rdma statistic show link "$DEVICE/1"

make_tree /tmp/ndktree
defer rm -rf /tmp/ndktree
check "file system, copy, compare" same_tree /tmp/ndktree "$DISK"

check "disconnect" nvme_disconnect
check "controllers gone" wait_for 30 no_controllers
check "target removed" port_down
check "no resources left" wait_for 20 no_resources
finish
