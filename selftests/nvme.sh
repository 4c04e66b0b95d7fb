#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe over the device, both ends in this kernel: verified I/O in the sizes
# that take different paths, a file system, and what the device tells about
# itself meanwhile.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# expect_resource KIND LEAST
expect_resource() {
	local n
	n=$(resources "$1")
	if ((n >= $2)); then ok "resource $1"; else not_ok "resource $1" "$n listed, at least $2 expected"; fi
}

# expect_count COUNTER OPERATOR NUMBER
expect_count() {
	local n
	n=$(counter "$1")
	if (("$n $2 $3")); then ok "counter $1"; else not_ok "counter $1" "$n, expected $2 $3"; fi
}

# begun_again: how often the host has taken an answer for lost, on a machine that stood still.
begun_again() { dmesg | grep -c 'nvme.*starting error recovery' || true; }

device_up
target_up 64
begun=$(begun_again)
check "connect" host_connect -i 2
defer host_down
wait_for 90 namespace
DISK=$(namespace)

# Two queues and the admin queue: what one side asked for, the other took.
if (($(begun_again) > begun)); then least='>='; else least='=='; fi
expect_count connects "$least" 3
expect_count accepts "$least" 3
check "what was asked for was accepted" wait_for 90 agree connects accepts
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

# What that must have moved, at least: for each block a command and its answer
# in both directions. The target fetches what is written, but for 4 KiB, which
# the command carries; it writes what is read. What it touches is registered and
# in the end invalidated from afar. 13 MiB go each way.
blocks=$((256 + 64 + 8))
expect_count sends ">=" $((4 * blocks))
expect_count reads ">=" $((64 + 8))
expect_count writes ">=" "$blocks"
expect_count registrations ">=" $((blocks + 64 + 8))
expect_count invalidations_remote ">=" "$blocks"
expect_count bytes_out ">=" $((2 * 13 * 1024 * 1024))
expect_count notify_any ">=" "$blocks"
check "what was sent was received" wait_for 90 agree sends receives
check "no byte is lost" wait_for 90 agree bytes_out bytes_in
for name in notify_solicited invalidations_refused access_refused cq_overflows rnr_timeouts; do
	expect_count "$name" == 0
done

make_tree /tmp/ndktree
defer rm -rf /tmp/ndktree
check "file system, copy, compare" same_tree /tmp/ndktree "$DISK"

check "disconnect" host_disconnect
check "controllers gone" wait_for 90 no_controllers
check "target removed" port_down
check "no resources left" wait_for 90 no_resources
finish
