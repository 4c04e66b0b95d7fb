#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The connection goes while a read is not sent yet, which is then made again.
#
# modules: cifs
# shows: unreferenced object .* smbdirect_connection_create_mr_list
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/../../selftests/lib.sh"
. "$(dirname "$0")/../../selftests/client.sh"
. "$(dirname "$0")/lib.sh"
use_client smb

device_up
defer client_down
check "mount" client_up "$ADDRESS" 16
head -c 16k /dev/urandom >"$SMB_EXPORT/file"
held_in_send "$SMB_MOUNT/file" delay_message
read_over_another_connection
check "unmount" smb_disconnect
leaks
finish
