#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A session logs out. The worker that ends the logout gets no processor until the connection is lost
# and waits for it, and then the threads of the connection are quicker.
#
# modules: iscsi_target_mod
# shows: not ok [0-9]+ it is gone, [0-9].* [1-9][0-9]* sessions stay
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
use_client iser

# One of the connection's threads waits for the worker.
connection_waits() {
	local pid
	for pid in $(pgrep '^iscsi_t[rt]x$'); do
		if grep -q wait_for_completion_timeout "/proc/$pid/stack" && grep -q isert_wait_conn "/proc/$pid/stack"; then
			return 0
		fi
	done
	return 1
}

# The worker is one of isert_comp_wq's: those with a nice value of -20 that belong to no processor.
# Only what has a real-time priority takes the processor from what keeps it busy.
logout() {
	local pid name nice loop client status=0
	while read -r pid nice name; do
		case $nice:$name in
		-20:kworker/u*) ;;
		# An idle worker may have ended.
		*:kworker/* | *:ksoftirqd/*) chrt -f -p 20 "$pid" || [[ ! -e /proc/$pid ]] || return ;;
		*:iscsi_t[rt]x) taskset -pc 0 "$pid" && chrt -f -p 50 "$pid" || return ;;
		esac
	done < <(ps -eo pid=,ni=,comm=)
	taskset -c 0 chrt -f 10 bash -c 'while :; do :; done' &
	loop=$!
	client disconnect &
	client=$!
	wait_for 60 connection_waits || { echo "the connection does not wait"; status=1; }
	kill "$loop"
	wait "$client" || status=1
	return "$status"
}

sessions() { cat "$ISER_TARGET/fabric_statistics/iscsi_instance/sessions"; }

no_session() { [[ $(sessions) == 0 ]]; }

# kmemleak does not see it each time: something may still point to the memory.
none_stays() { wait_for 20 no_session || { echo "$(sessions) sessions stay"; return 1; }; }

# The workers that belong to no processor are on the first one, where nothing is for those of a
# normal priority while others work.
put 1 /sys/devices/virtual/workqueue/cpumask
put 0 /sys/kernel/debug/sched/fair_server/cpu0/runtime
put -1 /proc/sys/kernel/sched_rt_runtime_us
device_up
defer client_down
client serve "$ADDRESS" 64
for round in 1 2 3; do
	check "log in, $round" client connect "$ADDRESS"
	check "log out, $round" logout
	check "it is gone, $round" none_stays
done
check "the server" client unserve
finish
