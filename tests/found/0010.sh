#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# An ordinary user says by netlink that he is the iWARP port mapper, and is told what others ask.
#
# modules: iw_cm
# program: netlink
# shows: not ok a user is no port mapper.* is the port mapper
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../guest/lib.sh"
NETLINK=$(dirname "$0")/../../build/netlink

# In a shell of its own, which becomes the program.
a_user() { (as_user timeout "$(slowly 60)" "$NETLINK" -i -l 5 -s 1); }

device_up
check "a user is no port mapper" a_user
finish
