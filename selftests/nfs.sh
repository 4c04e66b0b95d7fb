#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFS over RDMA, server and client in this kernel: what every client has to survive,
# the versions, many connections, locks, and what the server asks of its clients over
# their own connections.
#
# shellcheck disable=SC2317,SC2034 # functions are called by their name, see check(),
# and the variables are those of clients/nfs.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"
use_client nfs

OTHER=$NFS_MOUNT-other
SMALL_FILES=${SMALL_FILES:-$([[ ${NDK_KERNEL:-} == debug ]] && echo 100 || echo 400)}

# other_mount VERSION: a second client of the same server.  The minor versions of one
# host are clients of their own.
other_mount() { nfs_mount "$ADDRESS" "$OTHER" "$1"; }

# large_io: what is large crosses the device as RDMA reads and writes of the server.
large_io() {
	local reads writes bytes
	reads=$(counter reads) writes=$(counter writes) bytes=$(counter bytes_out)
	client_verify large write 1m 8m || return
	reads=$(($(counter reads) - reads)) writes=$(($(counter writes) - writes))
	bytes=$(($(counter bytes_out) - bytes))
	((reads >= 8 && writes >= 8 && bytes >= 16 * 1024 * 1024)) ||
		{ echo "$reads reads, $writes writes, $bytes bytes"; return 1; }
}

# small_files: many of them there, renamed, compared when nothing is cached, and gone.
small_files() {
	local i there=$NFS_MOUNT/small
	if [[ ! -d /tmp/ndk-small ]]; then
		mkdir /tmp/ndk-small
		for ((i = 0; i < SMALL_FILES; i++)); do
			head -c $((i * 37 % 9000)) /dev/urandom >"/tmp/ndk-small/$i" || return
		done
	fi
	cp -r /tmp/ndk-small "$NFS_MOUNT/new" && mv "$NFS_MOUNT/new" "$there" || return
	client remount || return
	diff -r /tmp/ndk-small "$there" && rm -r "$there" || return
	[[ ! -e $there ]]
}

# version_works VERSION
version_works() {
	local NFS_VERSION=$1
	client connect "$ADDRESS" || return
	large_io && small_files || return
	client disconnect
}

# connections_at_once VERSION N
connections_at_once() {
	local NFS_VERSION=$1
	client crowd "$ADDRESS" "$2" || return
	FIO_LIMIT=600 client_verify crowd randrw 4k 512k --numjobs=4 --offset_increment=1m || return
	nfs_connections "$2" || { echo "$(resources qp) queue pairs, not $((2 * $2))"; return 1; }
	client uncrowd
}

# range_lock FILE START LENGTH [SECONDS]: a lock of fcntl, kept for that time; status 3
# where another has it.
range_lock() {
	exec timeout -k 5 "$(slowly 900)" python3 -c '
import fcntl, sys, time
start, length, seconds = map(int, sys.argv[2:])
file = open(sys.argv[1], "r+b")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
except BlockingIOError:
    sys.exit(3)
print("held", flush=True)
time.sleep(seconds)
' "$1" "$2" "$3" "${4:-0}"
}

# The first mount has ten bytes: not one of them is the other's, but the ten behind are.
range_lock_excludes() {
	local holder inside=0 behind=0
	head -c 100 /dev/zero >"$NFS_MOUNT/range" || return
	: >/tmp/ndk-held
	range_lock "$NFS_MOUNT/range" 0 10 "$(slowly 600)" >/tmp/ndk-held &
	holder=$!
	wait_for 90 grep -q held /tmp/ndk-held || { echo "no lock"; return 1; }
	(range_lock "$OTHER/range" 5 1) || inside=$?
	(range_lock "$OTHER/range" 10 10) || behind=$?
	kill "$holder"
	wait "$holder" || true
	((inside == 3 && behind == 0)) || { echo "status $inside inside, $behind behind"; return 1; }
	(range_lock "$OTHER/range" 5 1) || { echo "not free afterwards"; return 1; }
}

# flock_excludes: who waits gets it when it is free.
flock_excludes() {
	local fd waiter
	exec {fd}>"$NFS_MOUNT/flock"
	limit 240 flock -x "$fd" || { echo "no lock"; return 1; }
	refused limit 240 flock -n "$OTHER/flock" true || { echo "locked by both"; return 1; }
	limit 600 flock -x "$OTHER/flock" true {fd}>&- &
	waiter=$!
	sleep 1
	! ended "$waiter" || { echo "the waiter has not waited"; return 1; }
	exec {fd}>&-
	wait_pid 300 "$waiter" || { echo "who waited did not get the lock"; return 1; }
}

# lock_survives: the server goes and comes back, and the lock is still the first one's.
lock_survives() {
	local fd status=0
	exec {fd}>"$NFS_MOUNT/kept"
	limit 240 flock -x "$fd" || { echo "no lock"; return 1; }
	client stop || { echo "the server does not stop"; return 1; }
	client start "$ADDRESS" || return
	limit 240 flock -n -E 3 "$OTHER/kept" true || status=$?
	((status == 3)) || { echo "the other's try ended with status $status, not 3"; return 1; }
	exec {fd}>&-
	limit 300 flock -x "$OTHER/kept" true || { echo "not free afterwards"; return 1; }
}

# locks VERSION: between that and the mount that is there.
locks() {
	local status=0
	other_mount "$1" || return
	"$2" || status=1
	nfs_unmount "$OTHER" || status=1
	return "$status"
}

# delegated FILE: the server has promised a client to be asked before that changes.
delegated() { grep -h 'type: deleg' "$NFSD"/clients/*/states | grep -q "/$1\""; }

delegations_returned() {
	awk '$1 == "DELEGRETURN:" { n += $2 } END { print n + 0 }' /proc/self/mountstats
}

# recall NAME COMMAND...: the client reads a file and is promised that it stays as it
# is; the command, which changes it, waits until the server has asked the client back,
# over the client's own connection.  Unasked it would wait until
# the server takes the promise back by itself, and the client would have returned none.
recall() {
	local fd name=$1 returned
	shift
	echo first >"$NFS_EXPORT/$name"
	returned=$(delegations_returned)
	exec {fd}<"$NFS_MOUNT/$name"
	wait_for 90 delegated "$name" || { echo "no delegation"; return 1; }
	# By itself it does so much later.
	put "$(slowly 480)" /proc/sys/fs/lease-break-time
	limit 240 "$@" || { echo "the writer ended with status $?"; return 1; }
	exec {fd}<&-
	! delegated "$name" || { echo "the delegation is still there"; return 1; }
	(($(delegations_returned) > returned)) || { echo "the client returned none"; return 1; }
	[[ $(<"$NFS_MOUNT/$name") == $'first\nsecond' ]] || { echo "the client reads what was"; return 1; }
}

append() { recall "$1" sh -c "echo second >>'$2/$1'"; }

callbacks_up() {
	local up all
	all=$(cat "$NFSD"/clients/*/info | grep -c '^callback state:')
	up=$(cat "$NFSD"/clients/*/info | grep -c '^callback state: UP')
	((all > 0 && up == all)) || { echo "$up of $all"; return 1; }
}

# What is NFS' own, with a server of its own.
versions_and_locks() {
	client serve "$ADDRESS" 64
	local version
	for version in 3 4.1 4.2; do
		check "vers=$version: large, and many small files" version_works "$version"
	done
	check "vers=3: 16 connections at once" connections_at_once 3 16
	check "vers=4.2: 16 connections at once" connections_at_once 4.2 16
	check "connect" client connect "$ADDRESS"
	check "fcntl of 4.2 against 4.1" locks 4.1 range_lock_excludes
	check "flock of 4.2 against 4.1" locks 4.1 flock_excludes
	check "fcntl of 4.2 against 3" locks 3 range_lock_excludes
	check "flock of 4.2 against 3" locks 3 flock_excludes
	check "recall for a writer on the server" append server "$NFS_EXPORT"
	check "other client" other_mount 4.1
	check "recall for another client" append client "$OTHER"
	check "callback channels of both" wait_for 90 callbacks_up
	check "a lock survives the server" lock_survives
	check "other client away" nfs_unmount "$OTHER"
	check "disconnect" client disconnect
	check "server down" client unserve
}

device_up
defer client_down
defer nfs_unmount "$OTHER"
# Without a device 127.0.0.1 is an error at once, even of a hard mount; another address is
# tried again.
if [[ $NETDEV == lo ]]; then
	ip addr add 10.80.1.1/32 dev lo
	ADDRESS=10.80.1.1
fi
is_short || versions_and_locks
nfs_recovers=yes
client_scenarios
finish
