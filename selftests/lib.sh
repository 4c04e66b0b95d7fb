# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# Helpers of the scenarios that run inside a test guest, as root. Source it.
#
# A scenario prints KTAP: `ok N NAME` or `not ok N NAME # REASON` for each test, and
# at its end, by finish(), the plan `1..N`. It registers its set-up with defer(), and
# that is undone in reverse order at its end, however it ends. Whatever could hang runs
# under limit().
#
# No verdict depends on how fast this machine is, or what else it does. A scenario waits for a
# condition, and a limit is there to end a hang: it is generous on an idle machine, and NDK_SLOW
# multiplies it. A test of time itself looks at the lower bound. scripts/lib/scenarios.py
# has the limit of the whole scenario, on an idle machine and the debug kernel under emulation.
#
# NDK_TYPE selects another soft provider (siw, rxe; on lean and um-full), to try the
# scenarios themselves: those cannot use lo and get a dummy device instead.

NDK_TYPE=${NDK_TYPE:-ndk}
# The factor by which this machine may be slower than an idle one.
export NDK_SLOW=${NDK_SLOW:-1}
[[ $NDK_SLOW == [1-9]* && $NDK_SLOW != *[!0-9]* ]] || { echo "NDK_SLOW=$NDK_SLOW is no number" >&2; exit 2; }
DEVICE=${NDK_TYPE}0
NQN=nqn.2014-08.org.nvmexpress:ndk-test
HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:6e646b00-0000-4000-8000-000000000001
HOSTID=6e646b00-0000-4000-8000-000000000001
NVMET=/sys/kernel/config/nvmet
NULLB=/sys/kernel/config/nullb
PORT=4420

case $NDK_TYPE in
ndk) NETDEV=lo ADDRESS=127.0.0.1 MODULE=ndk ;;
rxe) NETDEV=ndktest ADDRESS=10.77.0.1 MODULE=rdma_rxe ;;
*) NETDEV=ndktest ADDRESS=10.77.0.1 MODULE=$NDK_TYPE ;;
esac

# The programs: built beside the scripts in a kernel tree, in build/ elsewhere.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PROGRAMS=$HERE/../build/selftests
[[ -d $PROGRAMS ]] || PROGRAMS=${OUTPUT:-$HERE}

tests=0 failures=0
deferred=()

# result ok|"not ok" NAME [REASON]
result() {
	((tests++)) || echo "TAP version 13"
	echo "$1 $tests $2${3:+ # $3}"
}

ok() { result ok "$1"; }

not_ok() {
	result "not ok" "$1" "${2:-failed}"
	# So that its place in the kernel's log is known.
	{ echo "not ok $1" >/dev/kmsg; } 2>/dev/null || true
	failures=$((failures + 1))
}

# skip_all REASON: ends a scenario that this machine has nothing for.
skip_all() {
	trap - EXIT
	printf '%s\n' "TAP version 13" "1..0 # SKIP $1"
	exit 4
}

# slowly TIME [MOST]: so much on this machine, for what takes a limit of its own; no more
# than MOST, where that takes no more.
slowly() {
	local time=$(($1 * NDK_SLOW)) most
	most=${2:-$time}
	echo $((time > most ? most : time))
}

# limit SECONDS COMMAND...: run it, kill it after that time, times NDK_SLOW (status 124).
limit() {
	timeout -k $((10 * NDK_SLOW)) $(($1 * NDK_SLOW)) "${@:2}"
}

# check NAME COMMAND...: ok if the command succeeds.
check() {
	local name=$1 output status=0
	shift
	output=$("$@" 2>&1) || status=$?
	if ((status == 0)); then
		ok "$name"
	else
		not_ok "$name" "status $status, $(tail -n 2 <<<"$output" | tr '\n' ' ')"
	fi
}

TRACING=/sys/kernel/tracing

# trace_mount: the kernel's tracing is there, if it has that.  It records no names of tasks: for
# these the kernel changes the text of its scheduler while that runs, and QEMU before 8.1 may then
# execute a breakpoint that is there no more (its pages are not locked during translation).
trace_mount() {
	[[ -d $TRACING/events ]] || mount -t tracefs none "$TRACING" 2>/dev/null || return
	put 0 "$TRACING/options/record-cmd"
}

# as_user COMMAND...: in place of this shell, as an ordinary user.
as_user() { exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@" </dev/null; }

# refused COMMAND...: it fails of its own accord, however long that takes: the command has a
# limit, and that is not its end. Prints what it prints.
refused() {
	local status=0
	"$@" 2>&1 || status=$?
	case $status in
	0) echo "was accepted" && return 1 ;;
	124 | 137) echo "no answer: it hangs" && return 1 ;;
	126 | 127) echo "cannot be run" && return 1 ;;
	esac
}

# refuse NAME COMMAND...: ok if the command, no function, is refused.
refuse() {
	local name=$1
	shift
	check "$name" refused limit 120 "$@"
}

# wait_for SECONDS COMMAND...: until the command succeeds, for that time at most, times
# NDK_SLOW. It looks ten times at least, and once when the time is over: a machine that stood
# still has not waited.
wait_for() {
	local end=$((SECONDS + $1 * NDK_SLOW)) looks=10 is_over=0
	shift
	until "$@" >/dev/null 2>&1; do
		((!is_over)) || { echo "waited in vain: $*" >&2; return 1; }
		((--looks > 0 || SECONDS < end)) || is_over=1
		sleep 0.2
	done
}

# is_own_kernel: one of the project's, which have the patches of docs/found.
is_own_kernel() { [[ $(uname -r) == *-ndk ]]; }

# ended PID: whether a background process is over.
ended() { ! kill -0 "$1" 2>/dev/null; }

# wait_pid SECONDS PID: its status, or 124 when it is still there after wait_for's time.
wait_pid() {
	wait_for "$1" ended "$2" || return 124
	wait "$2"
}

# put VALUE FILE: one write, as sysfs and configfs want it.
put() { printf '%s' "$1" >"$2"; }

# defer COMMAND...: run it at the end, last one first.
defer() { deferred+=("$(printf '%q ' "$@")"); }

undo_all() {
	local i
	for ((i = ${#deferred[@]} - 1; i >= 0; i--)); do
		eval "${deferred[i]}" >/dev/null 2>&1 || true
	done
	deferred=()
}

on_exit() {
	local status=$?
	trap - EXIT
	set +e
	undo_all
	((status == 0)) || echo "# ended with status $status"
	exit "$status"
}
trap on_exit EXIT

finish() {
	trap - EXIT
	undo_all
	echo "1..$tests"
	exit $((failures > 0))
}

# --- the device

# load_module: the provider.  A message waits for a receive as long as others have to wait.
load_module() {
	local -a patience=()
	[[ $MODULE != ndk ]] || patience=(rnr_timeout_ms="$(slowly 30000 600000)")
	modprobe "$MODULE" "${patience[@]}"
}

load_modules() {
	modprobe -a ib_core rdma_cm ib_uverbs && load_module || return
	[[ $NETDEV == lo ]] || make_dummy "$NETDEV" "$ADDRESS"
}

# make_dummy NAME ADDRESS [OPTION]...: a dummy network device that is up.
make_dummy() {
	modprobe dummy numdummies=0 &&
		ip link add "$1" "${@:3}" type dummy &&
		ip addr add "$2/24" dev "$1" &&
		ip link set "$1" up
}

drop_dummy() { limit 240 ip link del "$1"; }

unload_modules() {
	[[ $NETDEV == lo || ! -e /sys/class/net/$NETDEV ]] || drop_dummy "$NETDEV"
	limit 120 modprobe -r "$MODULE"
}

add_link() { limit 120 rdma link add "$1" type "$NDK_TYPE" netdev "$2"; }

del_link() { limit 240 rdma link delete "$1"; }

has_link() { [[ -e /sys/class/infiniband/$1 ]]; }

link_state() {
	rdma -j link show "$1/1" | jq -r '.[0].state'
}

link_is() { [[ $(link_state "$1") == "$2" ]]; }

# device_up: the module and its device on $NETDEV, both gone at the end.
device_up() {
	defer unload_modules
	load_modules && add_link "$DEVICE" "$NETDEV" || return
	defer del_link_if_there "$DEVICE"
	wait_for 90 link_is "$DEVICE" ACTIVE
}

del_link_if_there() {
	! has_link "$1" || del_link "$1"
}

# --- the NVMe target

# target_up MIB [ADDRESS]: a memory-backed disk, exported over RDMA.
target_up() {
	defer target_down
	modprobe null_blk nr_devices=0 && modprobe nvmet-rdma &&
		modprobe nvme-rdma && host_is_patient && make_disk "$1" && make_subsystem &&
		port_up "${2:-$ADDRESS}"
}

# The host takes no request for lost because this machine is slow.
host_is_patient() {
	local parameters=/sys/module/nvme_core/parameters
	put "$(slowly 60)" "$parameters/io_timeout" &&
		put "$(slowly 60)" "$parameters/admin_timeout"
}

make_disk() {
	mkdir "$NULLB/ndkdisk" &&
		put "$1" "$NULLB/ndkdisk/size" &&
		put 1 "$NULLB/ndkdisk/memory_backed" &&
		put 512 "$NULLB/ndkdisk/blocksize" &&
		put 1 "$NULLB/ndkdisk/power"
}

make_subsystem() {
	local subsystem=$NVMET/subsystems/$NQN
	mkdir "$subsystem" &&
		put 1 "$subsystem/attr_allow_any_host" &&
		mkdir "$subsystem/namespaces/1" &&
		put "$(disk_path)" "$subsystem/namespaces/1/device_path" &&
		put 1 "$subsystem/namespaces/1/enable"
}

# The disk has the name of its directory, or on older kernels its index.
disk_path() {
	if [[ -b /dev/ndkdisk ]]; then
		echo /dev/ndkdisk
	else
		echo "/dev/nullb$(<"$NULLB/ndkdisk/index")"
	fi
}

port_up() {
	mkdir "$NVMET/ports/1" &&
		put rdma "$NVMET/ports/1/addr_trtype" &&
		put ipv4 "$NVMET/ports/1/addr_adrfam" &&
		put "$1" "$NVMET/ports/1/addr_traddr" &&
		put "$PORT" "$NVMET/ports/1/addr_trsvcid" &&
		limit 120 ln -s "$NVMET/subsystems/$NQN" "$NVMET/ports/1/subsystems/$NQN"
}

port_down() {
	[[ -d $NVMET/ports/1 ]] || return 0
	limit 120 rm -f "$NVMET/ports/1/subsystems/$NQN"
	rmdir "$NVMET/ports/1"
}

# Each step even if the one before failed; the whole may be called twice.
target_down() {
	local subsystem=$NVMET/subsystems/$NQN
	port_down || true
	if [[ -d $subsystem ]]; then
		put 0 "$subsystem/namespaces/1/enable" || true
		rmdir "$subsystem/namespaces/1" "$subsystem" || true
	fi
	if [[ -d $NULLB/ndkdisk ]]; then
		put 0 "$NULLB/ndkdisk/power" || true
		rmdir "$NULLB/ndkdisk" || true
	fi
	limit 120 modprobe -r nvme-rdma || true
	limit 120 modprobe -r nvmet-rdma || true
	limit 120 modprobe -r null_blk || true
}

# --- the NVMe host

# host_connect [OPTION]...: one controller, for which what is slow is not dead.
host_connect() {
	limit 300 nvme connect -t rdma -a "$ADDRESS" -s "$PORT" -n "$NQN" \
		--hostnqn "$HOSTNQN" --hostid "$HOSTID" \
		--reconnect-delay 1 --ctrl-loss-tmo "$(slowly 120)" --keep-alive-tmo "$(slowly 60)" "$@"
}

# fabrics_connect QUEUES [OPTION]: the same without nvme-cli: its start takes longer on a slow
# kernel than a connect, and it looks through the controllers that there are first: where one
# is about to come it refuses of its own accord ("already connected", 2.3).
fabrics_connect() {
	# shellcheck disable=SC2016 # for that bash
	fabrics_bash 300 "$1${2:+,$2}" 'echo "$0" >/dev/nvme-fabrics'
}

# fabrics_bash SECONDS QUEUES[,OPTION] COMMAND ARGUMENT...: a bash whose $0 is what connects.
fabrics_bash() {
	local options=transport=rdma,traddr=$ADDRESS,trsvcid=$PORT,nqn=$NQN,hostnqn=$HOSTNQN,hostid=$HOSTID
	options+=,reconnect_delay=1,ctrl_loss_tmo=$(slowly 120),keep_alive_tmo=$(slowly 60)
	limit "$1" bash -c "$3" "$options,nr_io_queues=$2" "${@:4}"
}

host_disconnect() {
	limit 300 nvme disconnect -n "$NQN"
}

controllers() {
	local dir
	for dir in /sys/class/nvme/nvme*; do
		if [[ -e $dir/subsysnqn && $(<"$dir/subsysnqn") == "$NQN" ]]; then
			echo "${dir##*/}"
		fi
	done
}

no_controllers() { [[ -z $(controllers) ]]; }

# The block device of the subsystem, not that of one path.
namespace() {
	local dir ns
	for dir in /sys/class/nvme-subsystem/nvme-subsys*; do
		[[ -e $dir/subsysnqn && $(<"$dir/subsysnqn") == "$NQN" ]] || continue
		for ns in "$dir"/nvme*n*; do
			[[ ${ns##*/} != *c*n* && -b /dev/${ns##*/} ]] || continue
			echo "/dev/${ns##*/}"
			return
		done
	done
	return 1
}

host_down() {
	no_controllers || host_disconnect || true
	wait_for 90 no_controllers
}

# --- load

# fio_verify NAME DISK RW BLOCKSIZE SIZE [OPTION]...: write, read back, compare
# crc32c; the results go to $FIO_OUT as JSON.
fio_verify() {
	local name=$1 disk=$2 rw=$3 bs=$4 size=$5
	shift 5
	limit "${FIO_LIMIT:-600}" fio --name="$name" --filename="$disk" --rw="$rw" \
		--bs="$bs" --size="$size" --direct=1 --ioengine=libaio --iodepth=16 \
		--verify_state_save=0 --verify=crc32c --verify_fatal=1 --do_verify=1 --fallocate=none \
		--output-format=json --output="${FIO_OUT:-/dev/null}" "$@"
}

# fio_start SECONDS NAME FILE [OPTION]...: I/O in the background until fio_stop, its pid in
# FIO_PID, the file that ends it in FIO_STOP, and what it says in a file of that name with .said.
# What it takes beyond that time is a hang.
#
# The disk may go while it runs: fio must not make a plain file in its place, where
# the node of the next disk belongs.
fio_start() {
	FIO_STOP=$(mktemp -u /tmp/fio-stop.XXXXXX)
	limit "$1" fio --name="$2" --filename="$3" --rw=randrw --bs=4k,64k --direct=1 --ioengine=libaio --iodepth=8 \
		--time_based --runtime="$(slowly "$1")" --trigger-file="$FIO_STOP" --aux-path=/tmp --verify_state_save=0 \
		"${@:4}" >"$FIO_STOP.said" 2>&1 &
	FIO_PID=$!
}

# fio_stop FILE: the I/O with that FIO_STOP ends when what is under way is done.
fio_stop() { : >"$1"; }

# fio_load DISK: load in the background.
fio_load() { fio_start 1800 load "$1" --size=16m --allow_file_create=0; }

# fio_background DISK: load in the background, which is under way.
fio_background() {
	local before
	before=$(counter bytes_out) || return
	[[ $before != null ]] || before=0
	fio_load "$1"
	moves "$FIO_PID" $((before + 1048576)) || { echo "the load does not run"; return 1; }
}

# moves PID BYTES: soon that process still runs, and the device has moved so many.
moves() {
	wait_for 120 ended_or_moved "$@" || return
	! ended "$1"
}

# ended_or_moved PID BYTES: the device has moved so many since it is there.  Others than ndk
# do not count them.
ended_or_moved() {
	local bytes
	! ended "$1" || return 0
	bytes=$(counter bytes_out)
	[[ $bytes == null ]] || ((bytes >= $2))
}

# fio_ends SECONDS: it is told to stop, and its status is that of the load, or 124 where it
# hangs.
fio_ends() {
	fio_stop "$FIO_STOP"
	wait_pid "$1" "$FIO_PID"
}

# make_tree DIR: a small tree with all that a copy can get wrong.
make_tree() {
	mkdir -p "$1/a/b/c" &&
		cp -r "$(dirname "${BASH_SOURCE[0]}")" "$1/scripts" &&
		head -c 3000001 /dev/urandom >"$1/random" &&
		head -c 100000 /dev/zero >"$1/zeroes" &&
		ln -s random "$1/link" &&
		seq 20000 >"$1/a/b/c/numbers"
}

# same_tree SOURCE DISK: make a file system, copy a tree, compare after a
# fresh mount, so that every byte has crossed the wire twice.
same_tree() {
	local mnt status=0
	mnt=$(mktemp -d)
	limit 240 mkfs.ext4 -q -F -E nodiscard "$2" || return
	mount "$2" "$mnt" || return
	cp -a "$1" "$mnt/tree" || status=$?
	limit 240 umount "$mnt" || return
	((status == 0)) || return "$status"
	mount "$2" "$mnt" || return
	diff -r --no-dereference "$1" "$mnt/tree" || status=$?
	limit 240 umount "$mnt" || return
	rmdir "$mnt"
	return "$status"
}

# --- what the device tells

# resources KIND: how many objects of a kind the device lists.
resources() {
	rdma -j resource show "$1" | jq --arg d "$DEVICE" '[.[] | select(.ifname == $d)] | length'
}

no_resources() {
	local kind
	for kind in qp cm_id mr pd; do
		[[ $(resources "$kind") == 0 ]] || return 1
	done
}

# agree NAME NAME: whether two counters are the same at one moment. One is a
# little behind while the host keeps its controller alive.
agree() {
	rdma -j statistic show link "$DEVICE/1" | jq -e ".[0] | .[\"$1\"] == .[\"$2\"]"
}

# counter NAME: a hardware counter of the port, as iproute2 shows it.
counter() {
	rdma -j statistic show link "$DEVICE/1" | jq ".[0][\"$1\"]"
}

# --- what the device does wrong when it is told to: docs/faults.md

FAULTS=/sys/kernel/debug/ndk/$DEVICE

has_faults() { [[ -d $FAULTS ]]; }

# fault_on NAME [FILE=VALUE]...: those files, the others as they are at first, and the
# probability last: with that all counting begins.
fault_on() {
	local dir=$FAULTS/fail_$1 word file probability=100
	shift
	put 0 "$dir/probability" || return
	for word in interval=1 times=1 space=0 nth=0 qp=0 opcode=any object=any event=any side=both "$@"; do
		file=$dir/${word%%=*}
		if [[ $word == probability=* ]]; then
			probability=${word#*=}
		elif [[ -e $file ]]; then
			put "${word#*=}" "$file" || { echo "$word is refused"; return 1; }
		fi
	done
	put "$probability" "$dir/probability"
}

# fault_hold NAME: on, and it never hits: what others are set to then patches no code under
# those who run it.  QEMU 7.2 on a busy machine may keep a translation of an instruction
# half patched, which ends in `Oops: int3`.
fault_hold() { fault_on "$1" nth=4294967295; }

fault_hits() { cat "$FAULTS/fail_$1/hits"; }

fault_has_hit() { (($(fault_hits "$1") > 0)); }

# fault_off NAME: off, if it has hit; an error if it has not.
fault_off() {
	local hits
	hits=$(fault_hits "$1") || return
	put 0 "$FAULTS/fail_$1/probability" || return
	((hits)) || { echo "$1 did not hit"; return 1; }
}

faults_off() {
	local file
	for file in "$FAULTS"/fail_*/probability; do
		[[ ! -e $file ]] || put 0 "$file"
	done
}
