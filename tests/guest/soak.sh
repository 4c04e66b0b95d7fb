#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# soak.sh [MINUTES]: all clients at once on one device, each with I/O that is verified,
# while the link goes down and up every 30 s, once at least.  One minute as part of `make test`.
#
# seconds: 3600
# kernel: nvme nfs iser srp rtrs smb
# make test: soak
# clients: all
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"

MINUTES=${1:-1}
CLIENTS=(nvme nfs iser srp rnbd smb)
NETDEV=ndksoak
ADDRESS=10.90.0.1
declare -A pids stops

# start_load NAME: verified I/O in the background until it is told to stop.  It reports now and
# then.
start_load() {
	local data
	use_client "$1"
	data=$(client_data) || return
	rm -f "/tmp/soak.$1"
	fio_start $((2 * MINUTES * 60 + 1800)) "$1" "$data" --size=32m --bsrange=4k-64k --blockalign=4k \
		--verify=crc32c --verify_fatal=1 --verify_backlog=128 --fallocate=none \
		--status-interval=10 --output-format=json --output="/tmp/soak.$1"
	pids[$1]=$FIO_PID
	stops[$1]=$FIO_STOP
}

# last_report NAME: what fio has said last.  It writes other lines between its reports.
last_report() { sed '/^fio: /d' "/tmp/soak.$1" | jq -se 'last'; }

# bytes NAME: what it has read, or what it has written, whichever is less, as it has said last.
# One program, as the machine is busy.
bytes() {
	awk '/"jobname"/ { n = 0 } /"io_bytes"/ { said[n++] = $3 + 0 }
		END { print (said[0] < said[1] ? said[0] : said[1]) + 0 }' "/tmp/soak.$1" 2>/dev/null || echo 0
}

# has_worked NAME BYTES: it has read and written more than that, or has ended.
has_worked() {
	sleep 2
	ended "${pids[$1]}" || (($(bytes "$1") > $2))
}

# all_work: each load does something from now on.
all_work() {
	local name
	local -A before
	for name in "${CLIENTS[@]}"; do
		before[$name]=$(bytes "$name")
	done
	for name in "${CLIENTS[@]}"; do
		wait_for 300 has_worked "$name" "${before[$name]}" || { echo "$name does not go on"; return 1; }
	done
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
	fio_stop "${stops[$1]}"
	wait_pid 600 "${pids[$1]}" || status=$?
	((status == 0)) || { echo "fio ended with status $status"; return 1; }
	last_report "$1" | jq -e '.jobs[0] | .error == 0 and .read.io_bytes > 0 and .write.io_bytes > 0' >/dev/null ||
		{ echo "fio did nothing, or met an error"; return 1; }
}

report() {
	last_report "$1" 2>/dev/null | jq -r --arg name "$1" '.jobs[0] |
		"# \($name): \(.read.total_ios) reads, \(.write.total_ios) writes, \((.read.io_bytes + .write.io_bytes) / 1048576 | floor) MiB"' 2>/dev/null || echo "# $1: fio has left no report"
}

modprobe -a ib_core rdma_cm ib_uverbs
modprobe "$MODULE"
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
for name in "${CLIENTS[@]}"; do
	start_load "$name"
done
check "all work" all_work
end=$((SECONDS + MINUTES * 60)) flaps=0
# Flaps come in time, however busy the processors are: their programs come before the loads.
chrt -f -p 1 $$
while ((flaps == 0 || SECONDS + 30 < end)); do
	sleep 30
	flap || { not_ok "flap $flaps" "the link does not come back"; break; }
	flaps=$((flaps + 1))
done
chrt -o -p 0 $$
echo "# $flaps flaps"
check "all work after the flaps" all_work
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
check "no resources left" wait_for 90 no_resources
finish
