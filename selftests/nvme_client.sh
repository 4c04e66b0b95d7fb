#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe as one of the storage clients: what each of them has to survive. `make test` has
# the same of it in nvme.sh, reconnect.sh and unplug.sh.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"

use_client nvme
device_up
client_scenarios
finish
