#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A connection goes while a task that reads has sent its request, and gets no processor to see that
# it was sent: meanwhile the answer may have freed the request (0002), or it is sent once more
# (0019).  Not each run shows a fault without its patch, so found-test has no part in it:
#
#   scripts/vm --kernel um-debug -- tests/found/run "$PWD/tests/found/reads.sh" \
#	"$(scripts/unpatched-build um-debug 0002 cifs)"
#
# kernel: smb
# clients: smb
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../guest/lib.sh"
. "$(dirname "$0")/../guest/client.sh"
use_client smb
ROUNDS=24

# How many reads the client has asked for.
asked() { sed -n 's/^Reads: \([0-9]*\) .*/\1/p' /proc/fs/cifs/Stats; }

has_asked() { (($(asked) > $1)); }

# The reader gets its processor now and then: often it is one that has sent.
lost_under_way() {
	local before
	before=$(asked)
	wait_for 120 has_asked "$before" || { echo "nothing is read"; return 1; }
	sleep 0.$((RANDOM % 9 + 1))
	del_link "$DEVICE" && add_link "$DEVICE" "$NETDEV" && wait_for 90 smb_listens
}

device_up
defer client_down
check "mount" client_up "$ADDRESS" 16
head -c 12m /dev/urandom >"$SMB_EXPORT/file"
for processor in 0 1 1; do
	taskset -c "$processor" bash -c 'while :; do :; done' &
	defer kill $!
done
taskset -c 1 chrt -i 0 dd if="$SMB_MOUNT/file" of=/dev/null bs=4k iflag=direct status=none &
defer kill $!
for ((round = 1; round <= ROUNDS; round++)); do
	check "lost under way, $round" lost_under_way
done
finish
