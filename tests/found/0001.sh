#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The listener's thread ends before the task that stops the server goes on, which gets no processor
# until the thread's memory is given back.
#
# modules: ksmbd
# shows: KASAN: slab-use-after-free in kthread_stop|refcount_t: addition on 0
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
use_client smb

# keep_busy PID: keeps its processor busy for a time of RCU's when the thread has ended.
keep_busy() {
	exec taskset -c 1 chrt -f 10 python3 -c '
import os, select, sys, time
ends = select.poll()
ends.register(os.pidfd_open(int(sys.argv[1])))
print("waits", flush=True)
ends.poll()
end = time.monotonic() + 0.6 * int(sys.argv[2])
while time.monotonic() < end:
    pass
' "$1" "$NDK_SLOW"
}

# The module goes while its server runs.  All is on one processor: the thread comes first, then
# what keeps it busy, then rmmod.
goes_late() {
	local thread
	thread=$(pgrep -o ksmbd-smbdirect) || { echo "no listener"; return 1; }
	taskset -pc 1 "$thread" && chrt -f -p 50 "$thread" || return
	keep_busy "$thread" >/tmp/ndk-busy &
	wait_for 60 grep -qx waits /tmp/ndk-busy || { echo "it does not wait"; return 1; }
	limit 120 taskset -c 1 rmmod ksmbd && wait $!
}

daemon_goes() {
	kill "$(<"$SMB_RUN/pid")" || true
	wait_for 90 ended "$(<"$SMB_RUN/pid")" || return
	rm -f "$SMB_RUN/pid" && umount "$SMB_EXPORT"
}

# Otherwise others get a part of each second.
put 0 /sys/kernel/debug/sched/fair_server/cpu1/runtime
device_up
for round in 1 2 3; do
	check "serve, round $round" client serve "$ADDRESS" 16
	check "the module goes, round $round" goes_late
	check "its daemon goes, round $round" daemon_goes
done
finish
