#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server refuses to open a disk that another client writes to.
#
# modules: rnbd-client
# shows: unreferenced object .* rnbd_clt_map_device
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
. "$(dirname "$0")/lib.sh"
use_client rnbd

device_up
defer client unserve
check "serve" client serve 127.0.0.1 64
defer rnbd_unmap first
check "the first, which writes" rnbd_map first 127.0.0.1 access_mode=rw
for n in 1 2 3 4; do
	check "refused, $n" refused rnbd_map "second$n" 127.0.0.1 access_mode=rw
done
leaks
finish
