#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The device goes while NVMe is busy on it: by link deletion, with its network
# device, with its module. The client may see I/O errors; nothing may hang,
# and afterwards everything can be set up anew.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# unplug NAME NETDEV ADDRESS COMMAND...: run the command under load.
unplug() {
	local name=$1 netdev=$2 status=0
	ADDRESS=$3
	shift 3
	if ! set_up "$netdev"; then
		not_ok "$name: set-up"
		clean_up
		return
	fi
	fio_background "$DISK" || not_ok "$name: load" "it does not run"
	limit 240 "$@" >/dev/null 2>&1 || status=$?
	if ((status)); then
		not_ok "$name" "status $status"
	else
		ok "$name"
	fi
	status=0
	fio_ends 300 || status=$?
	# Errors are expected; that it ends is what counts.
	if ((status == 124 || status == 137)); then
		not_ok "$name: load ends" "fio hangs"
	else
		ok "$name: load ends"
	fi
	check "$name: clean-up" clean_up
}

# The whole set-up again in each round: that it works shows nothing stayed.
set_up() {
	load_module
	add_link "$DEVICE" "$1" || return
	target_up 32 "$ADDRESS" || return
	host_connect -i 2 >/dev/null || return
	wait_for 90 namespace || return
	DISK=$(namespace)
}

clean_up() {
	host_down || { echo "controllers stay"; return 1; }
	target_down
	del_link_if_there "$DEVICE" || return
	[[ ! -d $NVMET/subsystems/$NQN ]]
}


load_modules
defer unload_modules
defer clean_up
base=$ADDRESS netdev=$NETDEV

unplug "rdma link delete under load" "$netdev" "$base" rdma link delete "$DEVICE"

make_dummy ndkdum 10.80.0.1
defer drop_dummy ndkdum
unplug "ip link del of a dummy under load" ndkdum 10.80.0.1 ip link del ndkdum

modprobe veth
ip link add ndkveth0 type veth peer name ndkveth1
defer ip link del ndkveth0
ip addr add 10.81.0.1/24 dev ndkveth0
ip link set ndkveth0 up
ip link set ndkveth1 up
unplug "ip link del of a veth under load" ndkveth0 10.81.0.1 ip link del ndkveth0

unplug "modprobe -r under load" "$netdev" "$base" modprobe -r "$MODULE"

# And it all still works.
check "set-up after all that" set_up "$netdev"
DISK=$(namespace || true)
[[ -z $DISK ]] || check "verified I/O after all that" fio_verify after "$DISK" randwrite 4k 512k
check "clean-up after all that" clean_up
finish
