#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Ordinary users on a machine whose kernel has NVMe and NFS over the device: they reach rdma_cm and
# netlink, read the numbers of all queue pairs, and name them wherever a number is asked for.
#
# ROUNDS, SPINS, ATTEMPTS and MINUTE say how much of each.
#
# shellcheck disable=SC2317,SC2034 # functions are called by their name, see check(), variables, too
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"
use_client nfs

case ${NDK_KERNEL:-} in
um-debug) : "${ROUNDS:=6}" "${SPINS:=8}" "${ATTEMPTS:=60}" "${MINUTE:=60}" ;;
um-full) : "${ROUNDS:=30}" "${SPINS:=60}" "${ATTEMPTS:=1000}" "${MINUTE:=60}" ;;
*) : "${ROUNDS:=3}" "${SPINS:=4}" "${ATTEMPTS:=20}" "${MINUTE:=20}" ;;
esac
NUMBERS=/tmp/ndk-numbers
NEXT=/tmp/ndk-next
# Where strangers listen, and where nobody does.
SILENT=7000 ACCEPTS=7001 REFUSES=7002 APART=7003 HOSTILE=7004 LATE=7005 NOBODY=7999
LATE_DEVICE=ndk9 LATE_NETDEV=ndklate LATE_ADDRESS=10.89.0.1
# So many numbers are named by those who connect again and again.
WIDTH=12

# stranger ARGUMENT...: the program, as a user, which ends by itself.
stranger() { (as_user timeout "$(slowly 120)" "$PROGRAMS/stranger" "$@"); }

# in_background NAME COMMAND...: as a user, until stopped() or the end; what it says is in
# /tmp/ndk-NAME, its pid in PID_NAME.
in_background() {
	local name=$1
	shift
	: >"/tmp/ndk-$name"
	as_user "$@" >"/tmp/ndk-$name" 2>&1 &
	printf -v "PID_$name" %s "$!"
	defer kill "$!"
}

said() { grep -q -- "$2" "/tmp/ndk-$1"; }

# listens NAME: it does so, soon.
listens() { wait_for 60 said "$1" listens || { tail -n 1 "/tmp/ndk-$1"; return 1; }; }

# ends_well NAME: it ends, with status 0; stopped NAME: when it is told to.
ends_well() {
	local pid=PID_$1 status=0
	wait_pid 120 "${!pid}" || status=$?
	((status != 124)) || kill -KILL "${!pid}"
	((status == 0)) || { echo "$1: status $status, $(tail -n 2 "/tmp/ndk-$1" | tr '\n' ' ')"; return 1; }
}
stopped() {
	local pid=PID_$1
	kill "${!pid}" 2>/dev/null || { tail -n 2 "/tmp/ndk-$1"; return 1; }
	ends_well "$1"
}

# The numbers of all queue pairs, as any user reads them.
all_numbers() {
	(as_user rdma -j resource show qp) | jq -r --arg d "$DEVICE" '.[] | select(.ifname == $d) | .lqpn'
}

write_numbers() {
	all_numbers >"$NUMBERS.$BASHPID" && mv "$NUMBERS.$BASHPID" "$NUMBERS"
}

follow_numbers() {
	while :; do
		write_numbers || true
		sleep 0.1
	done
}

# has_numbers LEAST
has_numbers() { write_numbers && (($(wc -l <"$NUMBERS") >= $1)); }

# only_root_writes: no file that the device or the module has is a user's to write.
only_root_writes() {
	local found folder folders=()
	[[ -n $(find "/sys/class/infiniband/$DEVICE/" -type f) ]] || { echo "no files"; return 1; }
	found=$(as_user find "/sys/class/infiniband/$DEVICE/" /sys/module/ndk/ -type f -writable) || return
	[[ -z $found ]] || { echo "$found"; return 1; }
	trace_mount || true
	for folder in /sys/kernel/debug/ndk "$TRACING/events/ndk"; do
		[[ ! -d $folder ]] || folders+=("$folder")
	done
	((${#folders[@]})) || { echo "no folders"; return 1; }
	for folder in "${folders[@]}"; do
		! (as_user ls "$folder") >/dev/null 2>&1 || { echo "$folder"; return 1; }
	done
}

# no_connect NUMBER...: no user connects with one of these; no_accept: or accepts.
no_connect() { stranger connect "$ADDRESS" "$SILENT" "$@"; }

# A request can be answered once: it comes from a controller that looks for its subsystem there.
no_accept() {
	local number
	for number in "$@"; do
		in_background accept "$PROGRAMS/stranger" accept "$ADDRESS" "$ACCEPTS" "$number"
		listens accept || return
		(PORT=$ACCEPTS refused fabrics_connect 1) || return
		ends_well accept || return
	done
}

# elsewhere COMMAND...: as a user in a network namespace of his own, which root makes, as some
# kernels have none of users.
elsewhere() {
	exec unshare --net bash -c 'ip link set lo up && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' \
		bash "$@" </dev/null
}

# no_take: nor does one who listens where servers do, in whatever port space, get their requests; not
# either where the device comes after him.
no_take() {
	local name
	in_background take_nvme "$PROGRAMS/stranger" take "$ADDRESS" "$PORT"
	in_background take_nfs "$PROGRAMS/stranger" take "$ADDRESS" "$NFS_PORT"
	listens take_nvme && listens take_nfs || return
	fabrics_connect 1 duplicate_connect || return
	newest_goes || return
	client disconnect && client connect "$ADDRESS" || return
	for name in take_nvme take_nfs; do
		stopped "$name" || return
	done
}

# no_spoil: nor does he take rdma_cm from a device that comes when he listens there at all addresses:
# the core gives up a device where one listener of before cannot listen.
no_spoil() {
	local status=0
	in_background take_all "$PROGRAMS/stranger" take 0.0.0.0 "$PORT"
	listens take_all || return
	make_dummy "$LATE_NETDEV" "$LATE_ADDRESS" || return
	{ add_link "$LATE_DEVICE" "$LATE_NETDEV" && wait_for 90 link_is "$LATE_DEVICE" ACTIVE; } || return
	in_background late "$PROGRAMS/stranger" refuse "$LATE_ADDRESS" "$LATE"
	{ listens late && stopped late; } || status=1
	stopped take_all || status=1
	{ del_link "$LATE_DEVICE" && drop_dummy "$LATE_NETDEV"; } || status=1
	return "$status"
}

# apart: all addresses are his there, and none of the requests that come to them here.
apart() {
	: >/tmp/ndk-apart
	elsewhere "$PROGRAMS/stranger" listen "$ADDRESS" "$APART" >/tmp/ndk-apart 2>&1 &
	PID_apart=$!
	listens apart || return
	(PORT=$APART refused fabrics_connect 1) || return
	stopped apart || return
	said apart ' 0 requests' || { cat /tmp/ndk-apart; return 1; }
}

# apart_exclusive: where namespaces do not share devices he may still listen, and gets none either.
apart_exclusive() {
	local status=0
	# Not while another name space is on its way out.
	wait_for 120 limit 120 rdma system set netns exclusive || return
	apart || status=1
	wait_for 120 limit 120 rdma system set netns shared || return
	return "$status"
}

no_connect_elsewhere() {
	(elsewhere timeout "$(slowly 120)" "$PROGRAMS/stranger" connect "$ADDRESS" "$PORT" "$@")
}

# round: a mount that goes, comes back and works, while users connect with whatever number there is.
round() {
	local file
	client disconnect || return
	foresee || return
	client connect "$ADDRESS" || return
	were_foreseen || return
	file=$(client place)/round
	echo something >"$file" && [[ $(<"$file") == something ]]
}

rounds() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		round || { echo "round $i"; return 1; }
	done
}

# spins COMMAND...: while three users connect with the next numbers that there will be: one where
# requests are left alone, one where they are refused, one where nobody listens.
spins() {
	local -a ports=("$SILENT" "$REFUSES" "$NOBODY")
	local i status=0
	foresee || return
	for i in 0 1 2; do
		in_background "spin$i" "$PROGRAMS/stranger" spin "$ADDRESS" "${ports[i]}" "$NEXT" "$WIDTH"
	done
	"$@" || status=$?
	for i in 0 1 2; do
		stopped "spin$i" || status=1
	done
	return "$status"
}

# foresee: from now on users name the numbers that come next, and two before: a new queue pair has
# one more than the last one.
foresee() {
	local first last
	write_numbers || return
	first=$(cat "$NEXT" 2>/dev/null || echo 0)
	last=$(sort -n "$NUMBERS" | tail -n 1)
	last=$((last > first + 1 ? last - 1 : first))
	echo "$last" >"$NEXT.new" && chmod 644 "$NEXT.new" && mv "$NEXT.new" "$NEXT"
}

# were_foreseen: queue pairs that were made since have numbers that users named.
were_foreseen() {
	local first
	first=$(<"$NEXT")
	write_numbers || return
	awk -v from="$((first + 2))" -v to="$((first + WIDTH))" '$1 >= from && $1 < to { n++ } END { exit !n }' "$NUMBERS" ||
		{ echo "none from $((first + 2)) on"; sort -n "$NUMBERS" | tail -n 3; return 1; }
	foresee
}

# connected: controllers that come and go, each of which connects at once.
connected() {
	local i
	for ((i = 0; i < SPINS; i++)); do
		foresee || return
		fabrics_connect 1 duplicate_connect || { echo "connect $i"; return 1; }
		were_foreseen || return
		newest_goes || return
	done
}

newest_goes() {
	local newest
	newest=$(controllers | sort -V | tail -n 1)
	put 1 "/sys/class/nvme/$newest/delete_controller"
}

# attempted: each makes one queue pair, and it goes again; users name its number, and those of the
# next. That of a controller that comes in the end shows that they did.
attempted() {
	foresee || return
	# shellcheck disable=SC2016 # for that bash
	(PORT=4999 fabrics_bash $((300 + ATTEMPTS)) 1 '
		for ((i = 1; i <= $1; i++)); do
			! echo "$0" 2>/dev/null >/dev/nvme-fabrics || { echo "attempt $i was accepted"; exit 1; }
			echo $(($2 + i)) >"$3"
		done' "$ATTEMPTS" "$(<"$NEXT")" "$NEXT") || return
	fabrics_connect 1 duplicate_connect || return
	were_foreseen || return
	newest_goes
}

# requests PID: of controllers that look for their subsystem at the hostile user's, as long as he is
# there.
requests() {
	while ! ended "$1"; do
		(PORT=$HOSTILE refused fabrics_connect 1) || return
		sleep 0.1
	done
}

# a_minute: all calls there are, from four threads of one user, and netlink from another, beside
# the I/O of the kernel's clients.
a_minute() {
	local disk nvme nfs nvme_stop nfs_stop status=0 PID_hostile PID_requests
	local -a mapper=()
	# Others' kernels let everybody be the port mapper (docs/found.md), and then wait for him.
	[[ ${NDK_KERNEL:-} == stock ]] || mapper=(-i)
	disk=$(namespace) || return
	fio_load "$disk"
	nvme=$FIO_PID nvme_stop=$FIO_STOP
	client_load fio_load || return
	nfs=$FIO_PID nfs_stop=$FIO_STOP
	in_background netlink "$PROGRAMS/netlink" -l "$MINUTE" -q "$NUMBERS" "${mapper[@]}"
	in_background hostile env NDK_SLOW="$NDK_SLOW" "$PROGRAMS/hostile" -a "$ADDRESS" -t 4 -n 1000000000 \
		-l "$MINUTE" -q "$NUMBERS" -p "$PORT" -p "$NFS_PORT" -b "$HOSTILE" -s "${SEED:-1}"
	requests "$PID_hostile" >/tmp/ndk-requests 2>&1 &
	PID_requests=$!
	wait_for $((MINUTE + 300)) ended "$PID_hostile" || true
	ends_well hostile && ends_well netlink && ends_well requests || status=1
	if ended "$nvme" || ended "$nfs"; then
		echo "the I/O has ended"
		status=1
	fi
	fio_stop "$nvme_stop"
	fio_stop "$nfs_stop"
	wait_pid 300 "$nvme" || { echo "NVMe's I/O has failed, status $?"; status=1; }
	wait_pid 300 "$nfs" || { echo "NFS's I/O has failed, status $?"; status=1; }
	return "$status"
}

for name in stranger netlink hostile; do
	[[ -x $PROGRAMS/$name ]] || { not_ok "$name" "is not built"; finish; }
done
rm -f "$NUMBERS" "$NEXT"
defer rm -f "$NUMBERS" "$NEXT"
device_up
modprobe rdma_ucm
# As udev has it.
wait_for 60 test -c /dev/infiniband/rdma_cm
chmod 666 /dev/infiniband/rdma_cm
target_up 64
defer client_down
client serve "$ADDRESS" 64
check "NVMe" host_connect -i 2
defer host_down
wait_for 90 namespace
check "NFS" client connect "$ADDRESS"
check "any user reads the numbers" has_numbers 8
check "root alone writes files of the device" only_root_writes
mapfile -t numbers <"$NUMBERS"

in_background silent "$PROGRAMS/stranger" listen "$ADDRESS" "$SILENT"
in_background refuse "$PROGRAMS/stranger" refuse "$ADDRESS" "$REFUSES"
check "users may listen" eval "listens silent && listens refuse"
check "no user connects with one" no_connect "${numbers[@]}"
check "no user accepts with one" no_accept "${numbers[@]:0:3}"
check "no user takes the requests of a server" no_take
check "nor rdma_cm from a device that comes after him" no_spoil
check "a listener of another network namespace is not reached" apart
check "nor with devices that are not shared" apart_exclusive
check "nor does a user connect from there" no_connect_elsewhere "${numbers[@]}"
check "NFS goes" client disconnect
check "and comes back" client connect "$ADDRESS"

check "mounts beside users that connect" spins rounds
check "controllers beside users that connect" spins connected
check "queue pairs that come and go beside them" spins attempted
follow_numbers &
defer kill $!
check "a minute of hostile users" a_minute
grep -h 'sent\|of others\|succeeded, seed' /tmp/ndk-netlink /tmp/ndk-hostile | sed 's/^/# /'
# Not by check(), whose shell cannot wait for them.
if stopped silent >/tmp/ndk-end && stopped refuse >/tmp/ndk-end; then
	ok "those that listen end"
else
	not_ok "those that listen end" "$(</tmp/ndk-end)"
fi
check "NFS goes in the end" client disconnect
check "NVMe, too" host_down
check "the server" client unserve
check "the target" target_down
check "nothing is left" wait_for 90 no_resources
finish
