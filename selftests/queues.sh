#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One controller with 16 queues, which connect at once, and whose completions the
# kernel moderates as it finds best. The host makes no more queues of a kind than
# there are processors, hence six of them and three kinds.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
(($(nproc) >= 6)) || skip_all "there are less than six processors"

# The admin queue counts, too.
# shellcheck disable=SC2317 # called by its name, see check()
has_queues() {
	local name
	name=$(controllers)
	[[ $(<"/sys/class/nvme/$name/queue_count") == $(($1 + 1)) ]]
}

# shellcheck disable=SC2317 # called by its name, see check()
are_moderated() {
	[[ $(rdma -d resource show cq) == *"adaptive-moderation on"* ]]
}

device_up
check "moderation" limit 120 rdma dev set "$DEVICE" adaptive-moderation on
target_up 32
defer host_down

check "connect" host_connect --nr-io-queues 6 --nr-write-queues 6 --nr-poll-queues 4
check "16 queues" has_queues 16
check "moderated queues" are_moderated
check "find the disk" wait_for 90 namespace
DISK=$(namespace || true)
[[ -z $DISK ]] || check "verified I/O on all processors" \
	fio_verify queues "$DISK" randrw 4k 512k --numjobs=6 --offset_increment=1m
check "disconnect" host_disconnect
check "target removed" port_down
check "no resources left" wait_for 90 no_resources
finish
