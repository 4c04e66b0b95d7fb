#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A program accepts what it has asked for itself, and goes.
#
# modules: iw_cm
# shows: BUG: failure at [^ ]*iwcm\.c
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/lib.sh"

programs_up
check "it accepts what it asks for" limit 120 "$PROGRAMS/ask" accept 7199
finish
