#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The answer of a read comes before its request is known to be sent, and then the connection goes.
# The guest ends with the report: behind that it may spin for ever.
#
# modules: cifs
# shows: KASAN: slab-use-after-free in cifs_call_async
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
. "$(dirname "$0")/lib.sh"
use_client smb

bytes_read() { sed -n 's/^Bytes read: \([0-9]*\) .*/\1/p' /proc/fs/cifs/Stats; }

has_answer() { (($(bytes_read) > $1)); }

device_up
defer client_down
check "mount" client_up "$ADDRESS" 16
head -c 16k /dev/urandom >"$SMB_EXPORT/file"
before=$(bytes_read)
held_in_send "$SMB_MOUNT/file" delay_completion side=requester
check "it is answered" wait_for 50 has_answer "$before"
read_over_another_connection
finish
