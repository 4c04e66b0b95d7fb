#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One of a session's two paths is lost, and I/O of several tasks goes on over the other.
#
# modules: rtrs-client
# shows: RTRS failed to transfer IO, err: -103
# shows: BUG: using smp_processor_id\(\) in preemptible .* code: .* get_(next|first)_path_rr
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
use_client rnbd

# one_path_left POLICY
one_path_left() {
	local status=0
	put "$1" /sys/class/rtrs-client/two/mpath_policy || return
	limit 120 fio --name="$1" --filename="$(rnbd_disk two)" --rw=randread --bs=4k --size=8m --direct=1 \
		--ioengine=libaio --iodepth=16 --numjobs=8 --time_based --runtime=20 --output=/tmp/ndk-fio.out || status=$?
	((status == 0)) || { grep -m 1 error /tmp/ndk-fio.out; return 1; }
}

device_up
make_dummy ndkdum 10.80.0.1
defer drop_dummy ndkdum
add_link "${DEVICE}b" ndkdum
defer del_link_if_there "${DEVICE}b"
defer client unserve
check "serve" client serve 127.0.0.1 64
defer rnbd_unmap two
check "two paths" rnbd_map two 127.0.0.1 path=ip:10.80.0.1
check "one is lost" rnbd_write 120 1 "$(echo /sys/class/rtrs-client/two/paths/*10.80.0.1/disconnect)"
for policy in round-robin min-inflight min-latency; do
	check "I/O over the other, $policy" one_path_left "$policy"
done
finish
