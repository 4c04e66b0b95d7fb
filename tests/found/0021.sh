#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A program reads an event into a page that it does not get, and others want to connect.
#
# modules: rdma_ucm
# shows: not ok [0-9]+ others connect # .*no answer
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/lib.sh"
FOLDER=/tmp/ndk-frozen HOLDS=7199 REFUSES=7198

make_folder() {
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 && modprobe ext4 || return
	wait_for 60 test -b /dev/nullb0
	mkfs.ext4 -q /dev/nullb0 && mkdir -p "$FOLDER" && mount /dev/nullb0 "$FOLDER" || return
	head -c 4096 /dev/zero >"$FOLDER/page" && sync
}

said() { grep -qx "$1" "/tmp/ndk-$2"; }

# asks N: another program does, and leaves it at that.
asks() {
	"$PROGRAMS/ask" connect "$HOLDS" >"/tmp/ndk-ask$1" 2>&1 &
	defer kill $!
	wait_for 60 said asks "ask$1" || { tail -n 1 "/tmp/ndk-ask$1"; return 1; }
}

holds() { wait_for 60 said holds request || { tail -n 1 /tmp/ndk-request; return 1; }; }

others_connect() {
	PORT=$REFUSES refused fabrics_connect 1 >/dev/null 2>&1 &
	wait_for 30 ended $! || { echo "no answer"; return 1; }
	wait $!
}

programs_up
modprobe nvme_rdma
check "a file system" make_folder
defer umount "$FOLDER"
"$PROGRAMS/stranger" refuse "$ADDRESS" "$REFUSES" >/tmp/ndk-refuses 2>&1 &
defer kill $!
"$PROGRAMS/request" hold "$HOLDS" "$FOLDER/page" >/tmp/ndk-request 2>&1 &
program=$!
defer kill "$program"
check "it listens" wait_for 60 said listens request
asks 1
check "it reads into a page that it does not get" holds
# The worker has this one's event for it, too.
asks 2
check "others connect" others_connect
kill "$program"
check "it gets the page" wait_for 60 said "has it" request
finish
