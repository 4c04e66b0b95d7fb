#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Faults on order: their files, that they hit what they are meant for and nothing else, what
# can be seen meanwhile, and what an NVMe controller does about each.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"
use_client nvme

ALL=(complete_with corrupt delay_completion delay_connect delay_message drop_connection
	drop_event no_memory port_down refuse_access refuse_invalidation reject_connect rnr)

files_are_there() {
	local name file
	[[ $(cd "$FAULTS" && printf '%s\n' fail_*) == "$(printf 'fail_%s\n' "${ALL[@]}")" ]] || { ls "$FAULTS"; return 1; }
	for name in "${ALL[@]}"; do
		for file in probability interval times space task-filter verbose nth seed seen hits; do
			[[ -f $FAULTS/fail_$name/$file ]] || { echo "no $name/$file"; return 1; }
		done
		[[ $(<"$FAULTS/fail_$name/probability") == 0 ]] || return 1
	done
	[[ $(<"$FAULTS/fail_drop_event/usec") == 0 && $(<"$FAULTS/fail_rnr/usec") == 1000 ]]
}

# What each fault of requests can hit; none takes another word.
declare -A OPCODES=([drop_connection]='send write read atomic'
	[complete_with]='send write read atomic reg_mr local_inv bind_mw recv'
	[delay_completion]='send write read atomic reg_mr local_inv bind_mw'
	[delay_message]='send write read atomic' [rnr]='send write'
	[refuse_invalidation]='send read local_inv' [refuse_access]='write read atomic'
	[corrupt]='send write read' [port_down]='send write read atomic')

opcodes_are_those_that_are_hit() {
	local name word
	for name in "${!OPCODES[@]}"; do
		for word in ${OPCODES[complete_with]}; do
			if [[ " ${OPCODES[$name]} " == *" $word "* ]]; then
				put "$word" "$FAULTS/fail_$name/opcode" || { echo "$name refuses $word"; return 1; }
			else
				bad_value "fail_$name/opcode" "$word" || { echo "$name takes $word"; return 1; }
			fi
		done
		put any "$FAULTS/fail_$name/opcode" || return
	done
}

# bad_value FILE VALUE: EINVAL, and what was there stays.
bad_value() {
	local before
	before=$(<"$FAULTS/$1")
	! put "$2" "$FAULTS/$1" 2>/tmp/refused || { echo "$2 was taken"; return 1; }
	grep -q 'Invalid argument' /tmp/refused || { cat /tmp/refused; return 1; }
	[[ $(<"$FAULTS/$1") == "$before" ]]
}

bad_values() {
	bad_value fail_rnr/probability 101 &&
		bad_value fail_rnr/probability x &&
		bad_value fail_rnr/interval 0 &&
		bad_value fail_rnr/opcode sendx &&
		bad_value fail_rnr/opcode "$(printf 'send,%.0s' {1..40})" &&
		bad_value fail_complete_with/opcode send,recv &&
		bad_value fail_complete_with/status success &&
		bad_value fail_complete_with/status ' ' &&
		bad_value fail_no_memory/object send &&
		bad_value fail_drop_event/event qp &&
		bad_value fail_delay_completion/side receiver &&
		out_of_range fail_rnr/usec 60000001 &&
		out_of_range fail_rnr/nth 4294967296 &&
		out_of_range fail_rnr/seed 99999999999
}

# out_of_range FILE VALUE: ERANGE, and what was there stays.
out_of_range() {
	local before
	before=$(<"$FAULTS/$1")
	! put "$2" "$FAULTS/$1" 2>/tmp/refused || { echo "$2 was taken"; return 1; }
	grep -q 'out of range' /tmp/refused || { cat /tmp/refused; return 1; }
	[[ $(<"$FAULTS/$1") == "$before" ]]
}

good_values() {
	local dir=$FAULTS/fail_complete_with
	put "send, write" "$dir/opcode" && [[ $(<"$dir/opcode") == send,write ]] || return
	put recv "$dir/opcode" && [[ $(<"$dir/opcode") == recv ]] || return
	put any "$dir/opcode" && [[ $(<"$dir/opcode") == any ]] || return
	put wr_flush_err "$dir/status" && [[ $(<"$dir/status") == wr_flush_err ]] || return
	put 42 "$dir/seed" && [[ $(<"$dir/seed") == 42 ]] || return
	dir=$FAULTS/fail_delay_completion
	[[ $(<"$dir/side") == both ]] && put requester "$dir/side" && [[ $(<"$dir/side") == requester ]]
}

# writes N: so many NVMe writes of 16 KiB over one queue, each of which the target fetches
# by one RDMA read.
writes() {
	limit 600 taskset -c 0 fio --name=writes --filename="$(client place)" --rw=write --bs=16k --size=8m \
		--io_size=$((16 * $1))k --direct=1 --ioengine=libaio --iodepth=1 --output=/dev/null
}

# Of the 300 writes the 200th loses its connection; none before, and none behind.
exactly_the_nth() {
	local before now
	before=$(counter disconnects)
	fault_on drop_connection opcode=read nth=200 || return
	writes 199 || { echo "the first 199 failed"; return 1; }
	[[ $(fault_hits drop_connection) == 0 ]] || { echo "hit too early"; return 1; }
	(($(counter disconnects) == before)) || return
	writes 101 || { echo "I/O failed"; return 1; }
	[[ $(fault_hits drop_connection) == 1 ]] || { echo "hits: $(fault_hits drop_connection)"; return 1; }
	fault_off drop_connection
	# Both ends of all its queues, as the host gives all of them up.
	now=$(counter disconnects)
	((now > before)) || { echo "no disconnect"; return 1; }
	wait_for 90 controller_is live
}

# Nine reads of 16 KiB fit into 160000 bytes, and pass.
bytes_pass_first() {
	fault_on delay_message opcode=read space=160000 usec=1 || return
	writes 9 || return
	[[ $(fault_hits delay_message) == 0 ]] || { echo "hit too early"; return 1; }
	writes 1 || return
	[[ $(fault_hits delay_message) == 1 ]] || { echo "not hit"; return 1; }
	fault_off delay_message
}

controller_is() { [[ $(<"/sys/class/nvme/$(controllers)/state") == "$1" ]]; }

# pattern_of SEED: which of 200 messages are hit at a probability of 10, by their numbers.
pattern_of() {
	client disconnect >/dev/null || return
	put 1 "$TRACING/events/ndk/ndk_fault/enable" || return
	: >"$TRACING/trace"
	client connect "$ADDRESS" >/dev/null || return
	fault_on delay_message opcode=read times=-1 usec=1 "seed=$1" probability=10 || return
	writes 200 || return
	put 0 "$FAULTS/fail_delay_message/probability"
	put 0 "$TRACING/events/ndk/ndk_fault/enable"
	sed -n 's/.*ndk_fault: .* fail_delay_message number=//p' "$TRACING/trace" | tr '\n' ' '
}

same_seed() {
	local first again other
	first=$(pattern_of 7) && again=$(pattern_of 7) && other=$(pattern_of 8) || return
	[[ $(wc -w <<<"$first") -ge 5 ]] || { echo "hits: $first"; return 1; }
	[[ $first == "$again" ]] || { echo "$first, then $again"; return 1; }
	[[ $first != "$other" ]] || { echo "the same with another seed"; return 1; }
}

qp_details() {
	rdma -j -dd resource show qp link "$DEVICE/1"
}

# What hangs can be found: the queue pair that waits, since when, and its peer.
waits_are_seen() {
	local waiting
	seen_in_time 15 wait_is_seen || { head -c 2000 /tmp/ndk-qps; return 1; }
	waiting=$(grep -o '"drv_waits_for_peer_receive_ms":[0-9]*' /tmp/ndk-qps | wc -l)
	((waiting == 1)) || { echo "$waiting queue pairs wait"; return 1; }
	! waits_now
}

# seen_in_time SECONDS COMMAND...: with the microseconds of a fault; where that was over before
# the look (status 3), which can be on a slow machine, again and longer.  A minute is the
# most.
seen_in_time() {
	local seconds status first=$1
	shift
	for seconds in $(slowly "$first" 60) 30 60 60 60 60; do
		status=0
		"$@" $((seconds * 1000000)) || status=$?
		((status == 3)) || return "$status"
	done
	echo "never seen in time"
	return "$status"
}

wait_is_seen() {
	local status=0 missed=0
	fault_on rnr opcode=send nth=30 usec="$1" || return
	client_load fio_load || return
	wait_for 120 fault_has_hit rnr || { echo "no hit"; return 1; }
	wait_for $(($1 / 1000000)) waits_now || missed=3
	fio_ends 300 || status=$?
	((status == 0)) || { echo "fio ended with status $status"; return 1; }
	fault_off rnr || return
	return "$missed"
}

# One look, which is kept.
waits_now() { qp_details >/tmp/ndk-qps && grep -q 'waits_for_peer_receive_ms' /tmp/ndk-qps; }

details_are_there() {
	local qp cq
	qp=$(rdma -dd resource show qp link "$DEVICE/1") || return
	cq=$(rdma -dd resource show cq dev "$DEVICE") || return
	has_words "$qp" 'state connected' peer_qpn sq_posted sq_outstanding rq_posted &&
		has_words "$cq" depth used 'armed any'
}

# has_words TEXT WORD...
has_words() {
	local text=$1 word
	shift
	for word; do
		grep -q "$word" <<<"$text" || { echo "no $word in $(head -c 1000 <<<"$text")"; return 1; }
	done
}

# same_all_the_way: a read that has completed was posted and started under the same name and with the
# same length, and a receive of the last connection, that a message took, posted with as many elements.
same_all_the_way() {
	local request receive event
	request=$(sed -nE '/.*ndk_complete: (dev=.* qp=[0-9]+) cq=[0-9]+ (wr_id=\S+ opcode=RDMA_READ) status=SUCCESS (length=16384)$/ { s//\1 \2 \3/p; q }' "$TRACING/trace")
	receive=$(sed -nE 's/.*ndk_receive: //p' "$TRACING/trace" | tail -n 1)
	for event in "post_send: ${request:?}" "start: $request" "post_recv: ${receive:?}"; do
		grep -qF "ndk_$event" "$TRACING/trace" || { echo "no $event"; return 1; }
	done
}

# Every event of a write, of a lost connection and of the next one.
events_come() {
	local event
	for event in "$TRACING"/events/ndk/*/enable; do
		put 1 "$event" || return
	done
	: >"$TRACING/trace"
	fault_on drop_connection opcode=read nth=3 || return
	writes 5 || return
	fault_off drop_connection || return
	wait_for 90 controller_is live
	fault_on rnr opcode=send nth=3 usec=20000 || return
	writes 5 || return
	fault_off rnr || return
	fault_on refuse_access opcode=read || return
	writes 5 || return
	fault_off refuse_access || return
	put 0 "$TRACING/events/ndk/enable"
	for event in post_send post_recv start receive complete notify connect disconnect \
		invalidate fault access_refused rnr_wait; do
		grep -q "ndk_$event: dev=$DEVICE" "$TRACING/trace" || { echo "no $event"; return 1; }
	done
	grep -q 'ndk_complete: .* opcode=RDMA_READ status=SUCCESS length=16384' "$TRACING/trace" &&
		grep -q 'ndk_complete: .* status=REM_ACCESS_ERR' "$TRACING/trace" &&
		grep -q 'ndk_disconnect: .* by=peer' "$TRACING/trace" &&
		grep -q "ndk_connect: .* dst=$ADDRESS:$PORT" "$TRACING/trace" || return
	same_all_the_way || return
	wait_for 90 controller_is live
}

port_goes_down() { seen_in_time 15 port_is_down_for; }

port_is_down_for() {
	local missed=0
	fault_on port_down usec="$1" || return
	client_load fio_load || return
	wait_for 120 fault_has_hit port_down || { echo "no hit"; return 1; }
	wait_for $(($1 / 1000000)) link_is "$DEVICE" DOWN || missed=3
	wait_for 120 link_is "$DEVICE" ACTIVE || { echo "still down"; return 1; }
	fio_ends 300 || return
	fault_off port_down || return
	return "$missed"
}

off_is_off() {
	local before
	before=$(counter faults_injected)
	writes 100 || return
	[[ $(counter faults_injected) == "$before" ]]
}

# The module goes while a request is delayed for a minute, disconnects are late, and a file
# of a fault is open.  Who destroys a queue pair waits for its late disconnect, one after the
# other: with both ends of three queues here that is six times as long.
unloaded_with_faults() {
	local fd
	fault_on drop_event event=disconnect times=-1 usec=1000000 || return
	fault_on delay_message times=1 nth=5 usec=60000000 || return
	client_load fio_load || return
	wait_for 120 fault_has_hit delay_message || { echo "no hit"; return 1; }
	exec {fd}<"$FAULTS/fail_rnr/opcode"
	del_link "$DEVICE" || { echo "not deleted"; return 1; }
	client disconnect || return
	fio_ends 300 || true
	modprobe -r nvmet-rdma nvme-rdma 2>/dev/null || true
	[[ -z ${fd:-} ]] || exec {fd}<&-
	limit 240 modprobe -r "$MODULE" || { echo "not unloaded"; return 1; }
	# What was late would come now.
	sleep 2
	load_module && add_link "$DEVICE" "$NETDEV"
}

# A device that goes while faults are on takes them along.
goes_with_faults() {
	fault_on delay_message times=-1 usec=1000 || return
	fault_on rnr times=-1 usec=1000 || return
	client_load fio_background || return
	del_link "$DEVICE" || { echo "not deleted"; return 1; }
	[[ ! -d $FAULTS ]] || { echo "the files are still there"; return 1; }
	client disconnect || return
	fio_ends 300 || true
	add_link "$DEVICE" "$NETDEV" || return
	[[ $(<"$FAULTS/fail_rnr/probability") == 0 ]]
}

PAGE=$HERE/../docs/faults.md

# walk NUMBER [LIMIT [USEC]]: the block of commands of the page's walk-through, as it stands there, and
# with the controller that is there now; 124 where it does not end.
walk() {
	local commands
	commands=$(awk -v wanted="$1" '/^## A walk-through/ { ours = 1 }
		ours && /^```$/ { inside = !inside; block += inside; next }
		ours && inside && block == wanted' "$PAGE")
	[[ -n $commands ]] || { echo "no such block"; return 1; }
	[[ -z ${3:-} ]] || commands=${commands/10000000/"$3"}
	limit "${2:-600}" bash -euc "${commands//\/dev\/nvme0n1/$(client place)}"
}

first_walk() {
	local report
	report=$(walk 1 2>&1) || { tail -n 5 <<<"$report"; return 1; }
	has_words "$report" '^1$' 'ndk_fault:.*fail_drop_connection number=1000' \
		'ndk_disconnect:.*by=peer' "ndk_connect:.*dst=$ADDRESS:$PORT" || return
	wait_for 90 controller_is live
}

second_walk() { seen_in_time 10 walk_finds; }

walk_finds() {
	local report status=0
	report=$(walk 2 $((2 * $1 / 1000000 + 60)) "$1" 2>&1) || status=$?
	wait_for 300 no_fio || { echo "fio hangs"; return 1; }
	((status != 124)) || return 3
	((status == 0)) || { tail -n 5 <<<"$report"; return 1; }
	[[ $(grep -c waits_for_peer_receive_ms <<<"$report") == 1 ]] || { echo "$report"; return 1; }
}

no_fio() { ! pgrep -x fio; }

device_up
trace_mount
check "the files of all faults" files_are_there
check "bad values are refused" bad_values
check "good values are kept" good_values
check "each fault takes the opcodes that it can hit" opcodes_are_those_that_are_hit
# From here on no branch is patched under I/O: see fault_hold().
fault_hold delay_connect
defer client_down
check "connect" client_up "$ADDRESS" 64
check "the 200th write and no other" exactly_the_nth
check "so many bytes pass first" bytes_pass_first
check "the same seed is the same run" same_seed
check "queue pairs and completion queues say what they do" details_are_there
check "who waits for a receive is seen" waits_are_seen
check "tracepoints" events_come
if [[ $NETDEV == lo && -f $PAGE ]]; then
	check "the walk-through, to the lost connection" first_walk
	check "the walk-through, to who waits" second_walk
fi
check "the port goes down and up" port_goes_down
faults_off
check "what is off does nothing" off_is_off
client_faults
check "the device goes with its faults on" goes_with_faults
check "disconnect" client_down
check "connect again" client_up "$ADDRESS" 64
check "the module goes with its faults on" unloaded_with_faults
check "all gone" client_down
finish
