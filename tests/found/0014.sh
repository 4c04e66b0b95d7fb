#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A host of the NVMe target is to use a group of Diffie-Hellman whose module is not loaded.
#
# modules: dh_generic
# shows: Invalid argument
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
HOST=/sys/kernel/config/nvmet/hosts/nqn.2014-08.org.nvmexpress:found

modprobe nvmet
mkdir "$HOST"
defer rmdir "$HOST"
check "a group" put ffdhe2048 "$HOST/dhchap_dhgroup"
finish
