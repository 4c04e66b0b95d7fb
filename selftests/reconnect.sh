#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections come and go: 50 NVMe controllers (20 on the emulated debug kernel) one after
# another, several at once, more queues than one, and refusals.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/clients/nvme.sh"

# Most of a cycle on the debug kernel is its checkers' time.
CYCLES=${CYCLES:-$([[ ${NDK_KERNEL:-} == debug ]] && echo 20 || echo 50)}

cycles() {
	local i
	for ((i = 1; i <= CYCLES; i++)); do
		fabrics_connect 1 queue_size=32 || { echo "connect $i failed"; return 1; }
		disconnect_all || { echo "disconnect $i failed"; return 1; }
		wait_for 90 no_controllers || { echo "controller $i stays"; return 1; }
	done
}

disconnect_all() {
	local name count=0
	for name in $(controllers); do
		echo 1 >"/sys/class/nvme/$name/delete_controller" || return 1
		count=$((count + 1))
	done
	((count == 1))
}

deny_host() {
	put 0 "$NVMET/subsystems/$NQN/attr_allow_any_host"
}

device_up
target_up 16
defer host_down

check "$CYCLES connects and disconnects" cycles

check "a queue for each processor" host_connect -i 16
check "disconnect those" host_disconnect
wait_for 90 no_controllers || true

check "four controllers at once" nvme_crowd "$ADDRESS" 4
check "disconnect them" host_disconnect
wait_for 90 no_controllers || true

# The target goes while the host is busy, and comes back: the host finds it
# again, and what it had under way is carried out after all.
target_comes_back() {
	local status=0
	host_connect -i 2 >/dev/null || { echo "no connect"; return 1; }
	wait_for 90 namespace || { echo "no disk"; return 1; }
	fio_background "$(namespace)" || return
	port_down
	wait_for 90 state_is connecting || { echo "the host did not notice"; return 1; }
	port_up "$ADDRESS"
	wait_for 120 state_is live || { echo "not connected again"; return 1; }
	fio_ends 300 || status=$?
	((status == 0)) || { echo "fio ended with status $status"; return 1; }
	host_disconnect
	wait_for 90 no_controllers
}

state_is() {
	[[ $(<"/sys/class/nvme/$(controllers)/state") == "$1" ]]
}

check "the target goes and comes back" target_comes_back

check "nobody listens" refused nvme_attempt "$ADDRESS" 4421
check "no such subsystem" refused limit 120 nvme connect -t rdma -a "$ADDRESS" \
	-s "$PORT" -n "$NQN-other" --hostnqn "$HOSTNQN" --hostid "$HOSTID" --ctrl-loss-tmo 0
# Documentation addresses: nobody is there, and no device leads there.
check "address without the device" refused nvme_attempt 192.0.2.77 "$PORT"
deny_host
check "host not allowed" refused host_connect -i 1
check "target removed" port_down
check "no resources left" wait_for 90 no_resources
finish
