#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFS' client frees a queue that its worker is still in, which gets no processor, where the event of
# the disconnect comes last; beside it NVMe's target has handled a connect, and loses its port.
#
# modules: ib_core
# kernel: nvme nfs
# clients: nfs
# shows: possible circular locking dependency
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../guest/lib.sh"
. "$(dirname "$0")/../guest/client.sh"
use_client nfs

# Workers may come and go.
slow_workers() {
	local pid
	for pid in $(pgrep 'kworker/([0-9]*:[0-9]*H|u)'); do
		chrt -i -p 0 "$pid" 2>/dev/null || true
	done
}

comes_and_goes() {
	local i
	for ((i = 0; i < 25; i++)); do
		slow_workers
		if ! client disconnect || ! client connect "$ADDRESS"; then
			echo "round $i"
			return 1
		fi
	done
}

device_up
target_up 64
defer client_down
client serve "$ADDRESS" 64
check "NVMe" host_connect -i 2
check "NFS" client connect "$ADDRESS"
for processor in 0 0 1 1; do
	taskset -c "$processor" bash -c 'while :; do :; done' &
	defer kill $!
done
check "it comes and goes" comes_and_goes
check "NFS goes" client disconnect
check "NVMe, too" host_down
check "the server" client unserve
check "the target" target_down
finish
