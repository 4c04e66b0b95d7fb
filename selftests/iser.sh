#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# iSCSI over RDMA, the target and the initiator in this kernel: what every client has
# to survive, and what iSCSI has of its own: discovery, IPv6, UNMAP, sessions that log
# in again by themselves, a portal that sends the initiator to another one.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"

REDIRECT=ndk_iser_redirect
REDIRECT_PORT=3261

# What the target tells of itself in a session for discovery, which is over RDMA as well.
# iscsiadm, as it is, may lose an answer that is quick (selftests/answered.c).
discovery() {
	local found before library
	library=$PROGRAMS/answered
	[[ -x $library ]] || { echo "$library is not built"; return 1; }
	before=$(counter connects)
	found=$(limit 240 env LD_PRELOAD="$library" \
		iscsiadm -m discovery -t sendtargets -p "$(iser_portal "$ADDRESS")" -I iser) || return
	[[ $found == "$(iser_portal "$ADDRESS"),1 $ISER_IQN" ]] || { echo "found $found"; return 1; }
	(($(counter connects) > before)) || { echo "not over RDMA"; return 1; }
	iser_forget
}

# One entry for eight connect requests: who finds it taken has to wait, not to fail.
full_listener() {
	local before
	before=$(</proc/sys/net/iw_cm/default_backlog)
	put 1 /proc/sys/net/iw_cm/default_backlog
	client stop && client start "$ADDRESS" || return
	put "$before" /proc/sys/net/iw_cm/default_backlog
	client crowd "$ADDRESS" 8 && client uncrowd
}

own_scenarios() {
	check "iser: discard" scsi_discard
	check "iser: disconnect for what follows" client disconnect
	check "iser: discovery" discovery
	check "iser: IPv6" over_ipv6
	if modinfo "$REDIRECT" >/dev/null 2>&1; then
		check "iser: login redirection" redirect
	else
		echo "# login redirection was not looked at: no module $REDIRECT here"
	fi
	check "iser: a full listener" full_listener
	check "iser: connect again" client connect "$ADDRESS"
}

over_ipv6() {
	iser_listen ::1 || return
	client connect ::1 || return
	client_verify ipv6 randwrite 4k 512k || return
	client disconnect && remove "$ISER_TPG/np/$(iser_portal ::1)"
}

# The initiator knows only the portal that serves nothing.
redirect() {
	local connected
	modprobe "$REDIRECT" address="$ADDRESS" port="$REDIRECT_PORT" to="$(iser_portal "$ADDRESS"),1" || return
	iser_record "$ADDRESS" "$REDIRECT_PORT" && iser_login "$ADDRESS" "$REDIRECT_PORT" || return
	wait_for 90 iser_place || { echo "no disk"; return 1; }
	[[ $(<"/sys/module/$REDIRECT/parameters/logins") == 1 ]] || { echo "not redirected once"; return 1; }
	connected=$(cat /sys/class/iscsi_connection/connection*/port)
	[[ $connected == "$ISER_PORT" ]] || { echo "connected to port $connected"; return 1; }
	client_verify redirected randwrite 4k 512k && client disconnect && modprobe -r "$REDIRECT"
}

use_client iser
device_up
client_scenarios
finish
