#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A listener goes before the turn of a request that has private data: no worker gets the processor
# of the program, which does not leave it from its connect to the listener's end.
#
# modules: iw_cm
# shows: unreferenced object .* cm_event_handler
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/lib.sh"

programs_up
put 1 /sys/devices/virtual/workqueue/cpumask
for round in 1 2 3 4; do
	check "it leaves what it asks for, $round" limit 120 taskset -c 0 chrt -f 10 "$PROGRAMS/ask" leave 7199
done
leaks
finish
