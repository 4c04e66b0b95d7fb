#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A portal has no RDMA any more, but the session that came in by it goes on, and ends later.
#
# modules: ib_isert
# shows: KASAN: slab-use-after-free in isert_cma_handler
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
use_client iser

device_up
defer client_down
check "connect" client_up "$ADDRESS" 64
check "no RDMA at the portal" put 0 "$ISER_TPG/np/$(iser_portal "$ADDRESS")/iser"
check "nothing listens" refused iser_listens
check "the session goes on" client_verify on randwrite 4k 512k
check "it ends" client disconnect
check "nothing of it stays" wait_for 90 iser_at_rest
finish
