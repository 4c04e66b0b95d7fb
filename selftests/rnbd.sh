#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# RNBD over RTRS over the device, both ends in this kernel: what every client has to
# survive, then what this one has of its own: IPv6, queues that are polled, modes of
# access, sessions of several paths, and how a session recovers.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/client.sh"
. "$(dirname "$0")/lib.sh"
use_client rnbd

# data_of SESSION [OPTION]...: what is written through its disk comes back.
data_of() {
	local disk session=$1
	shift
	disk=$(rnbd_disk "$session") || { echo "$session has no disk"; return 1; }
	fio_verify "$session" "$disk" randwrite 4k 1m "$@"
}

# expect_error TEXT COMMAND...: it fails by itself, and its error is that one.
expect_error() {
	local text=$1 said
	shift
	said=$(refused "$@") || { echo "$said"; return 1; }
	[[ $said == *"$text"* ]] || { echo "not '$text' but: $said"; return 1; }
}

connections() { resources qp; }

connections_are() { [[ $(connections) == "$1" ]]; }

# --- addresses

# The server listens on `::` alone, which has to be both.
both_families() {
	rnbd_map six ::1 || { echo "no session over IPv6"; return 1; }
	[[ $(<"$(rnbd_path_file six dst_addr)") == ip:::1 ]] || { echo "not over IPv6"; return 1; }
	data_of six --bsrange=512-128k --blockalign=512 || return
	rnbd_unmap six
}

# A link-local address, with its device's name.
link_local() {
	local address
	address=$(ip -6 -o addr show dev ndkdum scope link | awk '{ sub("/.*", "", $4); print $4 }')
	rnbd_map local6 "$address%ndkdum" || { echo "no session over $address%ndkdum"; return 1; }
	[[ $(<"$(rnbd_path_file local6 hca_name)") == "${DEVICE}b" ]] || { echo "over another device"; return 1; }
	data_of local6 && rnbd_unmap local6
}

# What has no meaning here ends with an error.
addresses_refused() {
	expect_error "" rnbd_map gid "x path=gid:fe80::1" || return
	expect_error "Invalid argument" rnbd_map bad 127.0.0.999 || return
	expect_error "Invalid argument" rnbd_map bad 127.0.0.1 dest_port=70000 || return
	no_session_left
}

no_session_left() {
	local left
	left=$(cd /sys/class/rtrs-client && echo *)
	[[ $left == '*' ]] || { echo "sessions are left: $left"; return 1; }
}

# --- queues

# polled_queues DISK: how many queues of it are for polling.
polled_queues() {
	cat "/sys/kernel/debug/block/${1#/dev/}/hctx"*/type | grep -cx poll
}

# polled NUMBER QUEUES: that many are asked for, and there; and what is written through
# them is there.  Nobody but who polls takes the completions of such a queue.
polled() {
	local disk
	rnbd_map poll 127.0.0.1 "nr_poll_queues=$1" || return
	disk=$(rnbd_disk poll)
	[[ $(polled_queues "$disk") == "$2" ]] || { echo "$(polled_queues "$disk") queues are polled"; return 1; }
	[[ $(<"/sys/block/${disk#/dev/}/queue/io_poll") == 1 ]] || { echo "the disk is not polled"; return 1; }
	data_of poll --ioengine=pvsync2 --hipri --iodepth=1 || return
	data_of poll || { echo "without polling"; return 1; }
	# A session is for polling, or it is not: no other disk joins it.
	expect_error "Invalid argument" rnbd_write 120 "sessname=poll device_path=dev/nosuch" "$RNBD_MAP" || return
	rnbd_unmap poll
}

not_polled() {
	expect_error "Invalid argument" rnbd_map poll 127.0.0.1 nr_poll_queues=-2 || return
	expect_error "Invalid argument" rnbd_map poll 127.0.0.1 nr_poll_queues=100 || return
	no_session_left
}

# A connection for each processor, one for the session's own messages, and those that
# are polled; each has two ends.
expect_connections() {
	local cpus want
	cpus=$(nproc)
	want=$((2 * (cpus + 1)))
	rnbd_map count 127.0.0.1 || return
	wait_for 90 connections_are "$want" || { echo "$(connections) queue pairs, not $want"; return 1; }
	rnbd_unmap count || return
	rnbd_map count 127.0.0.1 nr_poll_queues=1 || return
	wait_for 90 connections_are $((want + 2)) || { echo "$(connections) queue pairs, polling one"; return 1; }
	rnbd_unmap count
}

# --- modes of access

read_only() {
	local disk
	rnbd_map ro 127.0.0.1 access_mode=ro || return
	disk=$(rnbd_disk ro)
	[[ $(blockdev --getro "$disk") == 1 ]] || { echo "can be written"; return 1; }
	! dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct 2>/dev/null || { echo "is written"; return 1; }
	dd if="$disk" of=/dev/null bs=64k count=16 iflag=direct 2>/dev/null || { echo "cannot be read"; return 1; }
}

# One may write; a second one for a migration; no third.
writers() {
	rnbd_map first 127.0.0.1 access_mode=rw || return
	expect_error "" rnbd_map second 127.0.0.1 access_mode=rw || return
	rnbd_map migrated 127.0.0.1 access_mode=migration || { echo "no migration"; return 1; }
	expect_error "" rnbd_map third 127.0.0.1 access_mode=migration || return
	data_of first || return
	data_of migrated --offset=8m || return
	# Both disks are one: the pages of the first are read through the second.
	same_bytes "$(rnbd_disk first)" "$(rnbd_disk migrated)" || { echo "they are not one disk"; return 1; }
	expect_error "Invalid argument" rnbd_map other 127.0.0.1 access_mode=append
}

same_bytes() {
	cmp <(dd if="$1" bs=64k count=16 iflag=direct 2>/dev/null) <(dd if="$2" bs=64k count=16 iflag=direct 2>/dev/null)
}

unmap_all() {
	local link
	for link in "$RNBD_DISKS"/*@*; do
		[[ ! -e $link ]] || rnbd_unmap "${link##*@}" || return
	done
}

# Several disks of one session are told apart; one disk twice is refused.
several_disks() {
	rnbd_map many 127.0.0.1 || return
	expect_error "File exists" rnbd_map many 127.0.0.1 || return
	expect_error "No such file" rnbd_write 120 "sessname=many device_path=dev/nosuch" "$RNBD_MAP" || return
	expect_error "" rnbd_write 120 "sessname=nopath device_path=dev/nosuch" "$RNBD_MAP" || return
	data_of many && rnbd_unmap many
}

# --- how the server invalidates

# invalidated SESSION: how many keys of their own both sides have invalidated while that
# works.
invalidated() {
	local before
	rnbd_map "$1" 127.0.0.1 || return
	before=$(counter invalidations_local)
	data_of "$1" --bsrange=512-128k --blockalign=512 >&2 || return
	echo $(($(counter invalidations_local) - before))
	rnbd_unmap "$1"
}

# By default the server gives the memory of each request a new key; when it keeps them,
# the client's are left.
keys_kept() {
	local renewed kept
	renewed=$(invalidated renewed) || return
	rnbd_stop && limit 120 modprobe -r rtrs-server || return
	modprobe rtrs-server always_invalidate=N && modprobe rnbd-server || return
	kept=$(invalidated kept) || return
	rnbd_stop && limit 120 modprobe -r rtrs-server && modprobe rnbd-server || return
	((renewed > kept)) || { echo "$renewed keys were renewed, and $kept where they are kept"; return 1; }
}

# --- recovery

# The client finds the server again by itself, 30 s later.
recovers_by_itself() {
	local file
	rnbd_map auto 127.0.0.1 || return
	file=$(rnbd_path_file auto stats/reconnects)
	[[ $(<"$file") == "0 0" ]] || { echo "reconnects: $(<"$file")"; return 1; }
	put 1 "$(echo /sys/class/rtrs-server/auto/paths/*/disconnect)" || return
	wait_for 90 lost auto "$file" || { echo "the client does not see it"; return 1; }
	wait_for 180 rnbd_state_is auto open || { echo "not again"; return 1; }
	reconnected 1 "$file" || return
	data_of auto && rnbd_unmap auto
}

# lost SESSION FILE: its disk is closed; that was so where the client has connected again.
lost() { rnbd_state_is "$1" closed || [[ $(<"$2") != "0 0" ]]; }

# reconnected TIMES FILE: so many have succeeded.  One fails only where the client gave a
# connection up, or missed a sign of life, after half a minute.
reconnected() {
	local times failed
	read -r times failed <"$2"
	((times == $1 && failed == 0)) || { ((times >= $1)) && dmesg | grep -qE 'rtrs.*(ETIMEDOUT|HB missed)'; } ||
		{ echo "reconnects: $times $failed"; return 1; }
}

# The client drops the path and takes it up again, as often as told.
told_to_reconnect() {
	local i file
	rnbd_map told 127.0.0.1 || return
	for ((i = 1; i <= 5; i++)); do
		rnbd_write 120 1 "$(rnbd_path_file told disconnect)" || return
		! rnbd_connected told || { echo "still connected, $i"; return 1; }
		wait_for 90 rnbd_reconnect_now told || { echo "not connected, $i"; return 1; }
		wait_for 90 rnbd_state_is told open || { echo "not open, $i"; return 1; }
	done
	file=$(rnbd_path_file told stats/reconnects)
	reconnected 5 "$file" || return
	data_of told && rnbd_unmap told
}

# The device goes and comes back while the session stays; then its disk, too.
back_again() {
	rnbd_map back 127.0.0.1 || return
	fio_background "$(rnbd_disk back)" || return
	limit 240 rdma link delete "$DEVICE" || return
	wait_for 90 rnbd_state_is back closed || { echo "the client does not see it"; return 1; }
	expect_error "" rnbd_write 120 1 "$(rnbd_path_file back reconnect)" || { echo "without a device"; return 1; }
	add_again lo 127.0.0.1 || return
	wait_for 90 rnbd_reconnect_now back || { echo "no reconnect"; return 1; }
	wait_for 90 rnbd_state_is back open || { echo "the disk is not open again"; return 1; }
	fio_ends 300 || true
	data_of back && rnbd_unmap back
}

# The server closes one disk of a session, which stays; the client is not told, and its
# I/O fails until it opens the disk again with a new connection.
force_closed() {
	rnbd_map closed 127.0.0.1 || return
	put 1 "$(echo /sys/class/rnbd-server/ctl/devices/*/sessions/closed/force_close)" || return
	! dd if="$(rnbd_disk closed)" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null || { echo "can be read"; return 1; }
	rnbd_connected closed || { echo "the session went, too"; return 1; }
	rnbd_write 120 1 "$(rnbd_path_file closed disconnect)" || return
	wait_for 90 rnbd_reconnect_now closed || { echo "no reconnect"; return 1; }
	wait_for 90 rnbd_state_is closed open || { echo "the disk is not open again"; return 1; }
	data_of closed && rnbd_unmap closed
}

# --- several paths

# I/O goes on, verified, when the device of one of them is deleted, and again
# over both when it is back.
two_paths() {
	local session=/sys/class/rtrs-client/two policy
	rnbd_map two 10.80.0.1 path=ip:10.81.0.1 || return
	[[ $(cat "$session"/paths/*/state | grep -cx connected) == 2 ]] || { echo "not two paths"; return 1; }
	[[ $(cat "$session"/paths/*/hca_name | sort -u | wc -l) == 2 ]] || { echo "not two devices"; return 1; }
	expect_error "File exists" rnbd_write 120 ip:10.80.0.1 "$session/add_path" || return
	for policy in round-robin min-inflight min-latency; do
		put "$policy" "$session/mpath_policy" || return
		data_of two || { echo "by $policy"; return 1; }
	done
	put round-robin "$session/mpath_policy"
	one_path_less "${DEVICE}b" ndkdum || { echo "without the second path"; return 1; }
	one_path_less "${DEVICE}c" ndkdum2 || { echo "without the first path"; return 1; }
	rnbd_unmap two
}

# one_path_less DEVICE NETDEV
one_path_less() {
	local status=0 path before
	before=$(DEVICE=$1 counter bytes_out)
	fio_start 1800 two "$(rnbd_disk two)" --rw=randwrite --bs=4k --size=1m --iodepth=16 \
		--verify=crc32c --verify_fatal=1 --verify_backlog=64 --fallocate=none
	DEVICE=$1 moves "$FIO_PID" $((before + 65536)) || { echo "I/O does not run"; return 1; }
	limit 240 rdma link delete "$1" || status=1
	fio_ends 300 || { echo "I/O failed"; status=1; }
	add_link "$1" "$2" && wait_for 90 link_is "$1" ACTIVE || return
	for path in /sys/class/rtrs-client/two/paths/*; do
		[[ $(<"$path/state") == connected ]] || wait_for 90 rnbd_write 120 1 "$path/reconnect" || status=1
	done
	return "$status"
}

# --- both modules go while they are used

modules_go() {
	rnbd_map gone 127.0.0.1 || return
	# The disk is not open, so the client's module may go, and takes it along.
	limit 120 modprobe -r rnbd-client || { echo "the client does not unload"; return 1; }
	wait_for 90 rnbd_no_session gone || { echo "the server keeps the session"; return 1; }
	modprobe rnbd-client && rnbd_map again 127.0.0.1 || return
	limit 120 modprobe -r rnbd-server || { echo "the server does not unload"; return 1; }
	wait_for 90 rnbd_state_is again closed || { echo "the client does not see it"; return 1; }
	rnbd_unmap again || { echo "cannot be unmapped without a server"; return 1; }
	modprobe rnbd-server
}

# On lo and two dummies, each with a device.
scenarios_of_sessions() {
	add_link "$DEVICE" lo
	make_dummy ndkdum 10.80.0.1
	defer drop_dummy ndkdum
	add_link "${DEVICE}b" ndkdum
	defer del_link_if_there "${DEVICE}b"
	make_dummy ndkdum2 10.81.0.1
	defer drop_dummy ndkdum2
	add_link "${DEVICE}c" ndkdum2
	defer del_link_if_there "${DEVICE}c"
	check "rnbd: serve" client serve 127.0.0.1 64
	check "rnbd: IPv6" both_families
	check "rnbd: a link-local address" link_local
	check "rnbd: addresses that are refused" addresses_refused
	check "rnbd: a connection for each queue" expect_connections
	check "rnbd: one polled queue" polled 1 1
	check "rnbd: as many polled queues as processors" polled -1 "$(nproc)"
	check "rnbd: numbers of polled queues that are refused" not_polled
	check "rnbd: read-only" read_only
	check "rnbd: who may write" writers
	check "rnbd: those unmapped" unmap_all
	check "rnbd: disks of one session" several_disks
	check "rnbd: keys that the server keeps" keys_kept
	check "rnbd: recovers by itself" recovers_by_itself
	check "rnbd: disconnected and reconnected by hand" told_to_reconnect
	check "rnbd: rdma link delete, and the same session again" back_again
	check "rnbd: the server closes a disk" force_closed
	check "rnbd: two paths, each lost under load" two_paths
	check "rnbd: modules removed" modules_go
	check "rnbd: nothing is mapped any more" unmap_all
	check "rnbd: server down, the last time" client unserve
	check "rnbd: no resources left, the last time" wait_for 90 no_resources
}

device_up
client_scenarios
is_short || scenarios_of_sessions
finish
