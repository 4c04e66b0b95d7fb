#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# soak.sh [MINUTES]: all clients at once on one device, each with I/O that is verified,
# while the link goes down and up every 30 s.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"

MINUTES=${1:-10}
CLIENTS=(nvme nfs iser srp rnbd smb)
NETDEV=ndksoak
ADDRESS=10.90.0.1
declare -A pids

# start_load NAME: verified I/O until the time is over, in the background.
start_load() {
	local data
	use_client "$1"
	data=$(client_data) || return
	limit $((MINUTES * 60 + 1800)) fio --name="$1" --filename="$data" --rw=randrw --bs=4k,64k \
		--bsrange=4k-64k --blockalign=4k --size=32m --direct=1 --ioengine=libaio --iodepth=8 \
		--verify=crc32c --verify_fatal=1 --verify_backlog=128 --verify_state_save=0 --fallocate=none \
		--time_based --runtime=$((MINUTES * 60)) --output-format=json --output="/tmp/soak.$1" >/dev/null 2>&1 &
	pids[$1]=$!
}

# The link goes down for a second, as a cable does.
flap() {
	ip link set "$NETDEV" down || return
	sleep 1
	ip link set "$NETDEV" up || return
	wait_for 240 link_is "$DEVICE" ACTIVE
}

# load_ended NAME: with success, and with work done.
load_ended() {
	local status=0
	wait_pid 1800 "${pids[$1]}" || status=$?
	((status == 0)) || { echo "fio ended with status $status"; return 1; }
	jq -e '.jobs[0] | .error == 0 and .read.io_bytes > 0 and .write.io_bytes > 0' "/tmp/soak.$1" >/dev/null ||
		{ echo "fio did nothing, or met an error"; return 1; }
}

report() {
	jq -r --arg name "$1" '.jobs[0] |
		"# \($name): \(.read.total_ios) reads, \(.write.total_ios) writes, \((.read.io_bytes + .write.io_bytes) / 1048576 | floor) MiB"' \
		"/tmp/soak.$1" 2>/dev/null || echo "# $1: fio has left no report"
}

modprobe -a ib_core rdma_cm ib_uverbs
load_module
defer unload_modules
make_dummy "$NETDEV" "$ADDRESS"
add_link "$DEVICE" "$NETDEV"
defer del_link_if_there "$DEVICE"
wait_for 240 link_is "$DEVICE" ACTIVE
for name in "${CLIENTS[@]}"; do
	use_client "$name"
	defer "${name}_unserve"
	check "$name: server" client serve "$ADDRESS" 48
	defer "${name}_disconnect"
	check "$name: connect" client connect "$ADDRESS"
done
((failures == 0)) || finish
end=$((SECONDS + MINUTES * 60)) flaps=0
for name in "${CLIENTS[@]}"; do
	start_load "$name"
done
# Flaps come in time, however busy the processors are: their programs come before the loads.
chrt -f -p 1 $$
until ((flaps > 0 && SECONDS + 30 >= end)); do
	sleep 30
	flap || { not_ok "flap $flaps" "the link does not come back"; break; }
	flaps=$((flaps + 1))
done
chrt -o -p 0 $$
echo "# $flaps flaps"
for name in "${CLIENTS[@]}"; do
	# Not in a subshell: a process is waited for by its parent.
	if load_ended "$name" >/tmp/soak.why; then
		ok "$name: verified"
	else
		not_ok "$name: verified" "$(</tmp/soak.why)"
	fi
	report "$name"
done
for name in "${CLIENTS[@]}"; do
	use_client "$name"
	check "$name: disconnect" client disconnect
	check "$name: server gone" client unserve
done
check "no resources left" wait_for 60 no_resources
finish
