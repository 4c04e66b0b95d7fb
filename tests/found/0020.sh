#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe's target has handled a connect, and lost its port. Then NFS' client frees its queues where
# the event of the disconnect comes last, while a worker is still in one of them.
#
# modules: ib_core
# shows: possible circular locking dependency
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
use_client nfs

# in_real_time PATTERN PRIORITY: the threads of that name. A worker's has a + behind it while it works.
in_real_time() {
	local pid set=
	for pid in $(pgrep "$1"); do
		! chrt -f -p "$2" "$pid" 2>/dev/null || set=1
	done
	[[ -n $set ]] || { echo "no $1 is in real time"; return 1; }
}

# A worker of the client's drains a connection's queues and then frees what it had. It takes the
# processor from the one that tells it that they are empty, which so stays in the queue; the event
# of the disconnect takes it from both. The connections end one behind the other: what is right for
# one comes too late for the next.
# late_disconnects USEC: the event comes that late.
late_disconnects() {
	fault_on drop_event event=disconnect times=-1 usec="$1" || return
	client crowd "$ADDRESS" 8 || return
	in_real_time '^kworker/[0-9]*:[0-9]*([-+]|$)' 1 || return
	in_real_time '^kworker/u' 2 && in_real_time '^ksoftirqd' 2 || return
	client uncrowd && fault_off drop_event
}

device_up
target_up 64
defer faults_off
defer client_down
client serve "$ADDRESS" 64
check "NVMe" host_connect -i 2
check "NVMe goes" host_down
check "the port, too" port_down
for usec in 10000 20000 40000 80000 160000 320000; do
	check "NFS, disconnects are $usec us late" late_disconnects "$usec"
done
check "the server" client unserve
check "the target" target_down
finish
