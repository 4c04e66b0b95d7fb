#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# SMB Direct, ksmbd and cifs in this kernel: what every client has to survive, signing,
# encryption, and a session of several channels.
#
# shellcheck disable=SC2317,SC2034 # functions are called by their name, see check(),
# and the variables are those of clients/smb.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"
use_client smb

OTHER=$SMB_MOUNT-other
CHANNELS=4
SMALL_FILES=${SMALL_FILES:-$([[ ${NDK_KERNEL:-} == debug ]] && echo 50 || echo 200)}

# large_io LEAST MOST: so many RDMA reads, and as many writes, of the server move 8 MiB
# each way.
large_io() {
	local reads writes bytes
	reads=$(counter reads) writes=$(counter writes) bytes=$(counter bytes_out)
	client_verify large write 1m 8m || return
	reads=$(($(counter reads) - reads)) writes=$(($(counter writes) - writes))
	bytes=$(($(counter bytes_out) - bytes))
	((reads >= $1 && reads <= $2 && writes >= $1 && writes <= $2 && bytes >= 16 * 1024 * 1024)) ||
		{ echo "$reads reads and $writes writes, not $1 to $2 of each, $bytes bytes"; return 1; }
}

# small_files: many of them there, renamed, compared when nothing is cached, and gone.
small_files() {
	local i there=$SMB_MOUNT/small
	if [[ ! -d /tmp/ndk-small ]]; then
		mkdir /tmp/ndk-small
		for ((i = 0; i < SMALL_FILES; i++)); do
			head -c $((i * 37 % 9000)) /dev/urandom >"/tmp/ndk-small/$i" || return
		done
	fi
	cp -r /tmp/ndk-small "$SMB_MOUNT/new" && mv "$SMB_MOUNT/new" "$there" || return
	client remount || return
	diff -r /tmp/ndk-small "$there" && rm -r "$there" || return
	[[ ! -e $there ]]
}

# session_has WORD: what the client tells about its session.
session_has() { grep -q "$1" /proc/fs/cifs/DebugData; }

# secured OPTION WORD: verified I/O where each message is signed or encrypted.
secured() {
	local SMB_OPTIONS=$1
	client connect "$ADDRESS" || return
	session_has "$2" || { cat /proc/fs/cifs/DebugData; echo "the session is not $2"; return 1; }
	# All of it is in messages: the client has no direct placement for these yet.
	large_io 0 0 || return
	small_files || return
	client disconnect
}

# wrong_password: refused, which is an answer.
wrong_password() {
	local SMB_PASSWORD=other
	refused smb_mount_patiently "$ADDRESS" "$OTHER" || { smb_unmount "$OTHER"; return 1; }
}

# several_channels ADDRESS: the session has so many connections, all with work.
several_channels() {
	local SMB_OPTIONS=multichannel,max_channels=$CHANNELS SMB_GLOBAL='server multi channel support = yes'
	client serve "$1" 64 && client connect "$1" || return
	wait_for 90 smb_connections "$CHANNELS" ||
		{ echo "$(resources qp) queue pairs, not $((2 * CHANNELS))"; return 1; }
	large_io 8 1000 || return
	FIO_LIMIT=600 client_verify channels randrw 16k 1m --numjobs=4 --offset_increment=1m || return
	wait_for 90 smb_connections "$CHANNELS" || { echo "$(resources qp) queue pairs afterwards"; return 1; }
	small_files
}

# The server names no loopback interface to its clients: this takes another device. A client
# connects more than once to an interface only if the server says that it has RSS, which ksmbd
# does for one of several transmit queues.
scenario_channels() {
	make_dummy ndkdum 10.80.0.1 numtxqueues 4
	defer drop_dummy ndkdum
	add_link "$DEVICE" ndkdum
	check "multichannel: $CHANNELS connections, verified" several_channels 10.80.0.1
	check "multichannel: rdma link delete under load" scenario_unplug ndkdum 10.80.0.1 rdma link delete "$DEVICE"
	check "multichannel: disconnect" client disconnect
	check "multichannel: server down" client unserve
	check "multichannel: no resources left" wait_for 90 no_resources
}

# What is SMB's own, with a server of its own.
security() {
	client serve "$ADDRESS" 64
	check "connect" client connect "$ADDRESS"
	check "large, by RDMA reads and writes" large_io 8 1000
	check "many small files" small_files
	check "disconnect" client disconnect
	check "signed" secured sec=ntlmsspi signed
	# Without signing the client of 7.3 sends messages that are too large, and hangs.
	check "encrypted" secured sec=ntlmsspi,seal encrypted
	check "wrong password" wrong_password
	check "server down" client unserve
}

device_up
defer client_down
defer smb_unmount "$OTHER"
is_short || security
client_scenarios
is_short || scenario_channels
finish
