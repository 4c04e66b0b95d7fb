#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# An ordinary user says by netlink that he is the iWARP port mapper, and is told what others ask.
#
# modules: iw_cm
# shows: not ok [0-9]+ a user is no port mapper.* is the port mapper
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
NETLINK=$PROGRAMS/netlink

# In a shell of its own, which becomes the program.
a_user() { (as_user timeout "$(slowly 60)" "$NETLINK" -i -l 5 -s 1); }

device_up
check "a user is no port mapper" a_user
finish
