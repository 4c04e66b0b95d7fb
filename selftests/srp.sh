#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The SCSI RDMA protocol, target and initiator in this kernel: what every client has to
# survive, IPv6, UNMAP, and what the target keeps of a connection that its initiator has
# closed.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"

# The target's queue pairs and the initiator's.
queue_pairs() { resources qp; }

queue_pairs_are() { [[ $(queue_pairs) == "$1" ]]; }

# What the target keeps of closed connections is gone when its group was disabled.
lets_go() {
	local kept
	client disconnect || return
	kept=$(queue_pairs)
	put 0 "$(srp_group)/enable" || return
	wait_for 90 queue_pairs_are 0 || { echo "$(queue_pairs) of $kept stay"; return 1; }
	put 1 "$(srp_group)/enable" && client connect "$ADDRESS"
}

# The connection is by IPv6: of the address that the target knows the initiator by there
# is a session.
over_ipv6() {
	client disconnect && srp_allow ::1 && client connect ::1 || return
	cat "$(srp_group)/acls/$(srp_initiator ::1)/lun_0/statistics/scsi_att_intr_port/indx" || return
	client_verify ipv6 randwrite 4k 512k && client disconnect && client connect "$ADDRESS"
}

own_scenarios() {
	check "srp: discard" scsi_discard
	check "srp: what the target keeps is let go" lets_go
	check "srp: IPv6" over_ipv6
}

use_client srp
device_up
client_scenarios
finish
