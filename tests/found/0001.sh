#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The task that stops the server gets no processor between the end of the listener's socket and
# kthread_stop().
#
# modules: ksmbd
# kernel: smb
# shows: refcount_t: addition on 0|BUG: .*kthread_stop
set -euo pipefail
. "$(dirname "$0")/../guest/lib.sh"
. "$(dirname "$0")/../guest/client.sh"
use_client smb

# Everybody else comes before the task that stops the server.
stop_late() {
	local n loops=()
	for ((n = 0; n < 2 * $(nproc); n++)); do
		while :; do :; done &
		loops+=($!)
	done
	chrt -i 0 rmmod ksmbd || return
	kill "${loops[@]}"
}

device_up
for round in 1 2 3 4 5; do
	check "serve, round $round" client serve "$ADDRESS" 16
	check "stop, round $round" smb_stop
	umount "$SMB_EXPORT"
	check "the module goes, round $round" stop_late
done
finish
