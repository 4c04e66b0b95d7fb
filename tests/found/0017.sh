#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A program of rdma_cm takes away the request that its listener has an event of, by its number, or by
# moving the listener to another file, or to the end of the same file's list.
#
# modules: rdma_ucm
# shows: KASAN: slab-use-after-free in ucma_
# shows: not ok [0-9]+ it was not found.* [1-9][0-9]* taken
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
REQUEST=$PROGRAMS/request SAID=/tmp/ndk-request LISTENS=7199

# connect: a request of NVMe's, which nobody accepts.
connect() { PORT=$LISTENS refused fabrics_connect 1; }

# request MODE: two requests at the program's port.
request() {
	local program status=0
	limit 120 "$REQUEST" "$1" "$LISTENS" >"$SAID" 2>&1 &
	program=$!
	wait_for 60 grep -qx listens "$SAID" || status=1
	connect &
	connect || status=1
	wait $! || status=1
	wait "$program" || status=1
	((status == 0)) || cat "$SAID"
	return "$status"
}

# No command finds a request that nobody was told of.
none_was_taken() { grep -qx '0 taken' "$SAID" || { cat "$SAID" && return 1; }; }

modprobe -a rdma_ucm nvme_rdma
device_up
# KASAN reports the first fault only.
check "left by its listener" request migrate
check "before its listener" request tail
check "taken by its number" request destroy
check "it was not found" none_was_taken
finish
