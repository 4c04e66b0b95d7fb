#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A portal that is about to go rejects a request; then the device goes. The portal's thread gets no
# processor, so that the portal is not gone before the request comes.
#
# modules: ib_isert
# shows: KASAN: slab-use-after-free in isert_cma_handler
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
use_client iser

# The task waits for the portal's thread, and the portal takes no request any more.
portal_waits() { grep -q iscsit_reset_np_thread "/proc/$1/stack"; }

# Only what has a real-time priority takes the first processor from what keeps it busy. kthreadd must
# not be there: new threads start where it runs.
request_to_a_portal_that_goes() {
	local pid name loop portal before status=0
	while read -r pid name; do
		case $name in
		kworker/0:* | ksoftirqd/0) chrt -f -p 20 "$pid" || [[ ! -e /proc/$pid ]] || return ;;
		iscsi_np) taskset -pc 0 "$pid" || return ;;
		# Some belong to a processor.
		*) taskset -pc 1 "$pid" || true ;;
		esac
	done < <(ps -eo pid=,comm=)
	taskset -c 0 chrt -f 10 bash -c 'while :; do :; done' &
	loop=$!
	wait_for 60 grep -qx bash "/proc/$loop/comm" || { kill "$loop"; return 1; }
	put 0 "$ISER_TPG/np/$(iser_portal "$ADDRESS")/iser" &
	portal=$!
	wait_for 60 portal_waits "$portal" || { echo "the portal goes at once"; status=1; }
	before=$(counter rejects)
	refused limit 60 iscsiadm -m discovery -t sendtargets -p "$(iser_portal "$ADDRESS")" -I iser || status=1
	(($(counter rejects) > before)) || { echo "no request came"; status=1; }
	kill "$loop"
	wait_pid 120 "$portal" || status=1
	return "$status"
}

put 2 /sys/devices/virtual/workqueue/cpumask
put 0 /sys/kernel/debug/sched/fair_server/cpu0/runtime
put -1 /proc/sys/kernel/sched_rt_runtime_us
device_up
defer client_down
check "the server" client serve "$ADDRESS" 64
check "a request is rejected" request_to_a_portal_that_goes
check "nothing listens" refused iser_listens
check "the device goes" del_link "$DEVICE"
finish
