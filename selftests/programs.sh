#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs on the device, by the libraries that Debian ships: rdma-core's examples, perftest,
# libfabric, rsockets, libiscsi; what they must not do; and what is left of them when they are killed.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/clients/iser.sh"

# The checks of a debug kernel slow programs down, and emulation does; in a plain User Mode Linux nothing does.
case ${NDK_KERNEL:-} in
debug) : "${ROUNDS:=100}" "${PERF_ROUNDS:=5}" "${KILLS:=20}" "${CALLS:=12000}" ;;
um-debug) : "${ROUNDS:=200}" "${PERF_ROUNDS:=20}" "${KILLS:=40}" "${CALLS:=12000}" "${THREADS:=8}" ;;
um-full) : "${ROUNDS:=1000}" "${PERF_ROUNDS:=200}" "${KILLS:=100}" "${CALLS:=70000}" "${THREADS:=16}" ;;
*) : "${ROUNDS:=200}" "${PERF_ROUNDS:=20}" "${KILLS:=20}" "${CALLS:=5000}" ;;
esac
# Most of their time threads wait for one another.
SEED=${SEED:-1} THREADS=${THREADS:-4}
HOSTILE=$PROGRAMS/hostile
VERBS=$PROGRAMS/verbs
USER_NETDEV=ndkuser
USER_ADDRESS=10.88.0.1
TRANSPORT=iWARP
[[ $NDK_TYPE != rxe ]] || TRANSPORT=InfiniBand

# in_background SECONDS COMMAND...: what is killed then is the command.
in_background() { exec_limited "$@" & }
exec_limited() { exec timeout -k 5 "$(slowly "$1")" "${@:2}"; }

# listens: a server of the test; fi_pingpong's is reached over TCP first.
listens() {
	rdma resource show cm_id | grep -q 'state LISTEN' || ss -Hltn 'sport = :47592' | grep -q .
}

# both SECONDS SERVER... -- CLIENT...: the two end well; the status of the one that does not.
both() {
	local most=$1 server status=0
	local -a one=()
	shift
	while [[ $1 != -- ]]; do
		one+=("$1")
		shift
	done
	shift
	in_background "$most" "${one[@]}" >/tmp/ndk-server.log 2>&1
	server=$!
	wait_for 120 listens || true
	limit "$most" "$@" >/tmp/ndk-client.log 2>&1 || status=$?
	if ((status)); then
		kill "$server" 2>/dev/null || true
		wait "$server" || true
		echo "the client: $status, $(tail -n 3 /tmp/ndk-client.log | tr '\n' ' ')"
		return "$status"
	fi
	wait_pid "$most" "$server" || status=$?
	((status == 0)) || { kill -9 "$server" 2>/dev/null; echo "the server: $status, $(tail -n 3 /tmp/ndk-server.log | tr '\n' ' ')"; return "$status"; }
}

# no_user_resources: what programs had is gone.
no_user_resources() {
	local kind
	rdma link show "$DEVICE/1" >/dev/null || return
	for kind in qp cq mr pd srq cm_id ctx; do
		# What the kernel has names no process.
		! rdma resource show "$kind" | grep "$DEVICE" | grep -q ' pid ' || return
	done
}

# no_program_device: uverbs has none.
no_program_device() { ! compgen -G '/sys/class/infiniband_verbs/uverbs*'; }

off_by_default() {
	modprobe ib_uverbs
	add_link "$DEVICE" "$NETDEV" && no_program_device && del_link "$DEVICE"
}

devices() {
	ibv_devices | grep -qw "$DEVICE" || { ibv_devices; return 1; }
	ibv_devinfo -v -d "$DEVICE" >/tmp/ndk-devinfo || { cat /tmp/ndk-devinfo; return 1; }
	if ! grep -q "transport:.*$TRANSPORT" /tmp/ndk-devinfo || ! grep -q "PORT_ACTIVE" /tmp/ndk-devinfo; then
		cat /tmp/ndk-devinfo
		return 1
	fi
}

rping_mode() { both 300 rping -s -a "$ADDRESS" -p 7174 -C "$ROUNDS" -V "$@" -- rping -c -a "$ADDRESS" -p 7174 -C "$ROUNDS" -V "$@"; }

# perf PROGRAM OPTION...: of perftest.  For each size of -a it measures the clock, and a busy
# machine may let it measure one well, but not all: then it runs once for each.
perf() {
	local size status=0
	[[ " $* " == *" -a "* ]] || { perf_tries 20 "$@"; return; }
	perf_tries 2 "$@" || status=$?
	((status)) || return 0
	is_clock_uneven || return "$status"
	for ((size = 2; size <= 8388608; size *= 2)); do
		perf_tries 20 "${@/#-a/--size=$size}" || return
	done
}

# is_clock_uneven: whether that was why perftest ended.
is_clock_uneven() { grep -q 'Correlation coefficient' /tmp/ndk-*.log; }

# perf_tries COUNT PROGRAM OPTION...: so often at most.
perf_tries() {
	local most=$1 name=$2 i status
	shift 2
	for ((i = 0; i < most; i++)); do
		status=0
		perf_once "$name" "$@" || status=$?
		# Either it is well, or one of the two hung: 124, or 137 where it had to be killed.
		((status && status != 124 && status != 137)) || return "$status"
		# It measures the clock first, and gives up where others make that uneven; and it connects
		# twice, the second time maybe before its server listens again.
		is_clock_uneven || grep -q 'CM_EVENT_REJECTED; error: -111' /tmp/ndk-*.log || break
	done
	return "$status"
}

perf_once() {
	local name=$1
	shift
	both 300 "$name" -R -d "$DEVICE" -p 18515 "$@" -- "$name" -R -d "$DEVICE" -p 18515 "$@" "$ADDRESS"
}

# copied: a file through rsockets.
copied() {
	local server status=0
	head -c 3000000 /dev/urandom >/tmp/ndk-from
	in_background 300 rcopy
	server=$!
	wait_for 120 listens || { echo "no listener"; return 1; }
	limit 300 rcopy /tmp/ndk-from "$ADDRESS:/tmp/ndk-to" || status=$?
	kill "$server" || true
	wait "$server" || true
	((status == 0)) && cmp /tmp/ndk-from /tmp/ndk-to
}

# No datagrams, so no multicast: an error.
no_datagrams() { refused limit 120 udpong -s "$ADDRESS"; }

# are_connected: some two queue pairs.  Where a client has ended before, they never will be.
are_connected() { (($(rdma resource show qp | grep -c 'state RTS') >= 2)); }

connected_or_ended() { are_connected || ended "$1"; }

# killed NUMBER: clients of one server, killed in the middle of what they do, leave nothing.
killed() {
	local number=$1 i client server connected=0
	rping -s -P -a "$ADDRESS" -p 7175 >/dev/null 2>&1 &
	server=$!
	wait_for 120 listens || true
	for ((i = 0; i < number; i++)); do
		rping -c -a "$ADDRESS" -p 7175 -C 100000 >/dev/null 2>&1 &
		client=$!
		# Every other one in the middle of its work, the rest before that, as a rule.
		if ((i % 2 == 0)); then
			wait_for 120 connected_or_ended "$client" || true
			! are_connected || connected=$((connected + 1))
		fi
		sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
		kill -9 "$client"
		wait "$client" 2>/dev/null || true
		ended "$server" && { echo "the server has ended"; return 1; }
		# Now and then it is the server.
		((i % 10 != 9)) || {
			kill -9 "$server"
			wait "$server" 2>/dev/null || true
			rping -s -P -a "$ADDRESS" -p 7175 >/dev/null 2>&1 &
			server=$!
			wait_for 120 listens || true
		}
	done
	kill -9 "$server"
	wait "$server" 2>/dev/null || true
	((connected > number / 4)) || { echo "only $connected of $number were connected"; return 1; }
	wait_for 90 no_user_resources || { rdma resource; return 1; }
}

# limited: a program may register no more than its limit says, and is told so.
limited() {
	local said
	said=$( (ulimit -l 64 && as_user timeout "$(slowly 120)" rping -c -a "$ADDRESS" -S 65000 -C 1) 2>&1) && return 1
	grep -qi 'memory\|reg_mr' <<<"$said" || { echo "$said"; return 1; }
}

# in_cgroup: a program gets no more objects than its control group allows, and leaves none.
in_cgroup() {
	local group=/tmp/ndk-cgroup/ndk
	mkdir -p /tmp/ndk-cgroup && mount -t cgroup2 none /tmp/ndk-cgroup || return
	put +rdma /tmp/ndk-cgroup/cgroup.subtree_control &&
		mkdir "$group" &&
		put "$DEVICE hca_object=6" "$group/rdma.max" || return
	(put 0 "$group/cgroup.procs" && MOST=6 verbs rdma-max) || return
	! grep "$DEVICE .*hca_object=[1-9]" "$group/rdma.current" || return
	rmdir "$group" && umount /tmp/ndk-cgroup
}

# charged: what a program has queues of is charged to its control group.
charged() {
	local group=/tmp/ndk-cgroup/ndk most=$((16 << 20))
	mkdir -p /tmp/ndk-cgroup && mount -t cgroup2 none /tmp/ndk-cgroup || return
	put +memory /tmp/ndk-cgroup/cgroup.subtree_control && mkdir "$group" || return
	(put 0 "$group/cgroup.procs" && verbs dmabuf) || return
	(($(<"$group/memory.peak") < most)) || { echo "without a queue: $(<"$group/memory.peak")"; return 1; }
	(put 0 "$group/cgroup.procs" && verbs charged) || return
	(($(<"$group/memory.peak") > most)) || { echo "with a queue: $(<"$group/memory.peak")"; return 1; }
	rmdir "$group" && umount /tmp/ndk-cgroup
}

# elsewhere: a program in another network namespace reaches nobody in the device's.
elsewhere() {
	local server client said=/tmp/ndk-elsewhere
	in_background 300 rping -s -a "$ADDRESS" -p 7178 >/dev/null 2>&1
	server=$!
	wait_for 120 listens || { echo "no listener"; return 1; }
	in_background 300 unshare --net bash -c "ip link set lo up && exec stdbuf -oL rping -c -a $ADDRESS -p 7178 -C 1 -d" >"$said" 2>&1
	client=$!
	# When it has said so rping may wait for a thread of its own, for ever.
	wait_for 120 refused_or_ended "$client" "$said" || true
	kill "$client" "$server" || true
	wait "$client" "$server" 2>/dev/null || true
	is_refused "$said" || { tail -n 3 "$said"; return 1; }
}

is_refused() { grep -q 'RDMA_CM_EVENT_REJECTED, error -111' "$1"; }

refused_or_ended() { is_refused "$2" || ended "$1"; }

# only_its_task: a fault with a task filter meets those who asked for it.
only_its_task() {
	local said
	fault_on no_memory object=pd times=-1 task-filter=Y && verbs dmabuf || return
	[[ $(fault_hits no_memory) == 0 ]] || { echo "hit another task"; return 1; }
	said=$(put 1 /proc/self/make-it-fail && verbs dmabuf) && { echo "did not hit"; return 1; }
	grep -q 'Cannot allocate memory' <<<"$said" || { echo "$said"; return 1; }
	put N "$FAULTS/fail_no_memory/task-filter" && fault_off no_memory
}

# not_beside_hfi1: devices of two drivers with one number would be taken for each other's.
not_beside_hfi1() {
	local said
	modprobe hfi1 || return
	said=$(refused limit 120 rdma link add ndk9 type ndk netdev "$NETDEV") || { echo "$said"; return 1; }
	grep -qi busy <<<"$said" || { echo "$said"; return 1; }
	modprobe -r hfi1 && add_link ndk9 "$NETDEV" && del_link ndk9
}

# hostile OPTION...: a program that tries whatever it can (selftests/hostile.c), as an ordinary
# user, with one seed after another, as it is a matter of luck whether a connection comes about
# and moves something.
hostile() {
	local said seed
	chmod 666 /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm
	[[ -x $HOSTILE ]] || { echo "$HOSTILE is not built"; return 1; }
	for ((seed = SEED; seed < SEED + 6; seed++)); do
		said=$( (ulimit -l 65536 && as_user timeout "$(slowly 3000)" \
			"$HOSTILE" -a "$ADDRESS" -t "$THREADS" -s "$seed" "$@") 2>&1) ||
			{ tail -n 3 <<<"$said"; return 1; }
		wait_for 90 no_user_resources || { rdma resource; return 1; }
		! grep -qE '^hostile: [1-9][0-9]* connections, [1-9][0-9]* transfers' <<<"$said" || return 0
	done
	tail -n 3 <<<"$said"
	return 1
}

# verbs NAME: a test of selftests/verbs.c, on a device that may go down.
verbs() { NETDEV=$USER_NETDEV limit 300 "$VERBS" "$1" "$DEVICE" "$USER_ADDRESS"; }

# kernel_target: a program at one end, the kernel at the other.
kernel_target() {
	local url=iser://$ADDRESS:$ISER_PORT/$ISER_IQN/0
	modprobe -a iscsi_target_mod ib_isert &&
		lio_store_up "$ISER_STORE" 64 &&
		mkdir -p "$ISER_TPG/lun/lun_0" &&
		ln -s "$HBA/$ISER_STORE" "$ISER_TPG/lun/lun_0/store" &&
		put 0 "$ISER_TPG/attrib/authentication" &&
		put 1 "$ISER_TPG/attrib/generate_node_acls" &&
		iser_start "$ADDRESS" || return
	limit 120 iscsi-inq "$url" | grep -q Vendor &&
		limit 120 iscsi-readcapacity16 "$url" | grep -q LOGICAL &&
		iscsi_io "$url"
}

# iscsi_io URL: reads for some seconds.  The program aborts itself when it does not run for one.
iscsi_io() {
	local try said
	for ((try = 0; try < 20; try++)); do
		said=$(limit 120 iscsi-perf -t 3 "$1" 2>&1) && return
		grep -q 'Last alarm was not processed' <<<"$said" || break
	done
	tail -n 2 <<<"$said"
	return 1
}

# The device goes while programs have it open.
unplugged() {
	local server client
	in_background 300 rping -s -a "$ADDRESS" -p 7176 >/dev/null 2>&1
	server=$!
	wait_for 120 listens || { echo "no listener"; return 1; }
	in_background 300 rping -c -a "$ADDRESS" -p 7176 -C 100000 >/dev/null 2>&1
	client=$!
	wait_for 90 are_connected || { echo "no connection"; return 1; }
	limit 240 rdma link delete "$DEVICE" || { echo "the device does not go"; return 1; }
	no_program_device || return
	wait_for 90 ended "$client" || { echo "the client hangs"; return 1; }
	# rping's server waits for a next client, whatever becomes of its device.
	kill "$server" || true
	wait_for 90 ended "$server" || { echo "the server hangs"; return 1; }
	wait "$server" "$client" || true
}

# perftest wants to know the processor's frequency, which it measures; User Mode Linux names none.
if ! grep -q '^cpu MHz' /proc/cpuinfo; then
	{ cat /proc/cpuinfo && echo "cpu MHz : 1000.0"; } >/tmp/ndk-cpuinfo
	mount --bind /tmp/ndk-cpuinfo /proc/cpuinfo
	defer umount /proc/cpuinfo
fi
[[ $NETDEV == lo ]] || defer drop_dummy "$NETDEV"
defer drop_dummy "$USER_NETDEV"
load_modules
if [[ $NDK_TYPE == ndk ]]; then
	check "off unless it is asked for" off_by_default
	echo 1 >/sys/module/ndk/parameters/user_verbs
fi
modprobe -a ib_uverbs rdma_ucm
# That of siw may not go.
[[ $NDK_TYPE == siw ]] || defer del_link_if_there "$DEVICE"
add_link "$DEVICE" "$NETDEV"
check "ibv_devices, ibv_devinfo -v" devices
check "rping" rping_mode
check "rping, 60000 bytes" rping_mode -S 60000
check "rping, one client after the other" rping_mode -v -C 3
check "ucmatose" both 300 ucmatose -b "$ADDRESS" -c 4 -C 100 -- ucmatose -s "$ADDRESS" -c 4 -C 100
check "rstream, verified" both 300 rstream -b "$ADDRESS" -S 65536 -C 20 -T v -- rstream -s "$ADDRESS" -S 65536 -C 20 -T v
check "rstream, nonblocking" both 300 rstream -b "$ADDRESS" -S 4096 -C 20 -T n -- rstream -s "$ADDRESS" -S 4096 -C 20 -T n
check "rcopy" copied
# siw and rxe connect it.
if [[ $NDK_TYPE == ndk ]]; then
	check "not from another network namespace" elsewhere
fi
# rxe has datagrams.
if [[ $NDK_TYPE != rxe ]]; then
	check "udpong is refused" no_datagrams
fi
check "ib_send_bw" perf ib_send_bw -a -n "$PERF_ROUNDS"
check "ib_send_lat" perf ib_send_lat -a -n "$PERF_ROUNDS"
check "ib_write_bw" perf ib_write_bw -a -n "$PERF_ROUNDS"
check "ib_write_lat" perf ib_write_lat -a -n "$PERF_ROUNDS"
check "ib_read_bw" perf ib_read_bw -a -n "$PERF_ROUNDS"
check "ib_read_lat" perf ib_read_lat -a -n "$PERF_ROUNDS"
check "ib_atomic_bw" perf ib_atomic_bw -n "$PERF_ROUNDS"
check "ib_atomic_lat" perf ib_atomic_lat -A FETCH_AND_ADD -n "$PERF_ROUNDS"
check "ib_send_bw, both ways" perf ib_send_bw -b -s 65536 -n 200
# perftest waits for the event of a completion also where it lacks the peer's credit for its last
# message, and polls sixteen completions an event.  An odd number of messages leaves a credit to
# spare, and with -Q 100 one message of a hundred has a completion.
check "ib_send_bw, with events" perf ib_send_bw -e -s 65536 -n 201 -Q 100
check "ib_send_bw, a shared receive queue" perf ib_send_bw --use-srq -s 4096 -n 200
check "libiscsi's initiator and the kernel's target" kernel_target
check "the target down" iser_unserve
check "killed" killed "$KILLS"
# On the others' devices, which `make programs` runs, a crash would end the comparison.
if [[ $NDK_TYPE == ndk ]]; then
	check "hostile" hostile -n "$CALLS"
	check "hostile, with signals" hostile -n $((CALLS / 4)) -i
fi
check "no more memory than the limit" limited
check "nothing is left" wait_for 90 no_user_resources
check "rdma link delete with programs" unplugged
# libfabric does not look at loopback.
make_dummy "$USER_NETDEV" "$USER_ADDRESS"
add_link "$DEVICE" "$USER_NETDEV"
check "fi_pingpong" both 300 fi_pingpong -p verbs -e msg -- fi_pingpong -p verbs -e msg "$USER_ADDRESS"
for name in dereg munmap mremap fork exit readonly dmabuf queues late late-srq solicited srq-limit port access numbers owner; do
	# Rights of a queue pair that asks for none, and the files of libhfi1verbs, are ndk's own.
	[[ $NDK_TYPE == ndk || $name != access ]] || continue
	check "verbs: $name" verbs "$name"
done
if [[ $NDK_TYPE == ndk ]]; then
	check "verbs: mmap" verbs mmap
fi
if [[ ${NDK_KERNEL:-} == *debug ]]; then
	check "a fault for one task" only_its_task
fi
# Only Debian's kernel has huge pages, the control group of RDMA, and hfi1.
if [[ ${NDK_KERNEL:-} == stock ]]; then
	echo 8 >/proc/sys/vm/nr_hugepages
	check "verbs: huge pages" verbs huge
	echo 0 >/proc/sys/vm/nr_hugepages
	check "rdma.max" in_cgroup
	check "queues are charged" charged
	check "none beside hfi1" not_beside_hfi1
fi
check "nothing is left again" wait_for 90 no_user_resources
check "verbs: fatal" verbs fatal
drop_dummy "$USER_NETDEV"
finish
