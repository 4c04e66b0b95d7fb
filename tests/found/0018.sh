#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The core frees a queue that softirqs poll without waiting for them: ndk waits itself.
#
# modules: ib_core
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
RESULTS=/tmp/ndk-results

waits() {
	mkdir "$RESULTS"
	"$(dirname "$0")/../../scripts/guest/kunit" "$RESULTS" "ndk_consumer_cq.$CASE" "" ndk_consumer_test || return
	cat "$RESULTS"/ndk_consumer_cq.ktap && grep -qx "    ok [0-9]* $CASE" "$RESULTS/ndk_consumer_cq.ktap"
}

CASE=cq_is_freed_behind_softirqs
check "$CASE" waits
finish
