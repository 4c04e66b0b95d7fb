#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe that proves who it is (DH-HMAC-CHAP, both ways), and NVMe over two devices of one
# host, of which one goes while I/O runs: the other path carries it on without an error.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

HOST=$NVMET/hosts/$HOSTNQN
SECOND=${NDK_TYPE}1
# Not lo: rdma_cm takes a listener on a loopback address for one on all addresses, and
# refuses another address on that port (cma_check_port).
NETDEV=ndkpath0
ADDRESS=10.82.0.1

new_key() { nvme gen-dhchap-key --hmac=1 --nqn "$1"; }

# allow_only_host: with its key and the controller's.
allow_only_host() {
	mkdir "$HOST" &&
		put 0 "$NVMET/subsystems/$NQN/attr_allow_any_host" &&
		put "$host_key" "$HOST/dhchap_key" &&
		put "$controller_key" "$HOST/dhchap_ctrl_key" &&
		put 'hmac(sha256)' "$HOST/dhchap_hash" &&
		put ffdhe2048 "$HOST/dhchap_dhgroup" &&
		ln -s "$HOST" "$NVMET/subsystems/$NQN/allowed_hosts/$HOSTNQN"
}

allow_any_host() {
	[[ -d $HOST ]] || return 0
	rm -f "$NVMET/subsystems/$NQN/allowed_hosts/$HOSTNQN"
	rmdir "$HOST"
	put 1 "$NVMET/subsystems/$NQN/attr_allow_any_host"
}

# no_login OPTION...: the target says no.
no_login() {
	local status=0 output
	output=$(refused host_connect -i 1 --ctrl-loss-tmo 0 "$@") || status=$?
	if ((status)) || [[ $output != *"could not add"* ]]; then
		echo "$output"
		return 1
	fi
}

authentication() {
	host_key=$(new_key "$HOSTNQN") controller_key=$(new_key "$NQN")
	check "one host, with its key" allow_only_host
	check "a host without a key" no_login
	# Not a host with another key: docs/clients.md.
	check "a controller with another key" no_login --dhchap-secret "$host_key" \
		--dhchap-ctrl-secret "$(new_key "$NQN")"
	check "both with their keys" host_connect -i 2 --dhchap-secret "$host_key" --dhchap-ctrl-secret "$controller_key"
	check "find the disk" wait_for 90 namespace
	check "verified I/O" fio_verify auth "$(namespace)" randwrite 4k 512k
	check "disconnect" host_disconnect
	check "controllers gone" wait_for 90 no_controllers
	check "any host again" allow_any_host
}

second_device() { add_link "$SECOND" ndkpath1 && wait_for 90 link_is "$SECOND" ACTIVE; }

# second_port ADDRESS: the same subsystem there, too.
second_port() {
	mkdir "$NVMET/ports/2" &&
		put rdma "$NVMET/ports/2/addr_trtype" &&
		put ipv4 "$NVMET/ports/2/addr_adrfam" &&
		put "$1" "$NVMET/ports/2/addr_traddr" &&
		put "$PORT" "$NVMET/ports/2/addr_trsvcid" &&
		limit 120 ln -s "$NVMET/subsystems/$NQN" "$NVMET/ports/2/subsystems/$NQN"
}

second_port_down() {
	[[ -d $NVMET/ports/2 ]] || return 0
	limit 120 rm -f "$NVMET/ports/2/subsystems/$NQN"
	rmdir "$NVMET/ports/2"
}

live_paths() {
	local name
	for name in $(controllers); do
		[[ $(<"/sys/class/nvme/$name/state") != live ]] || echo "$name"
	done
}

paths_are() { [[ $(live_paths | wc -l) == "$1" ]]; }

connect_second() { ADDRESS=10.81.0.1 host_connect -i 2; }

# Verified I/O, in whose middle the second device goes.
one_path_goes() {
	local status=0 before
	before=$(DEVICE=$SECOND counter bytes_out)
	fio_start 1800 paths "$DISK" --size=8m --bsrange=4k-64k --blockalign=4k --iodepth=16 \
		--verify=crc32c --verify_fatal=1 --verify_backlog=64 --fallocate=none
	DEVICE=$SECOND moves "$FIO_PID" $((before + 1048576)) || { echo "fio does not run"; return 1; }
	del_link "$SECOND" || { echo "the device cannot be deleted"; return 1; }
	wait_for 90 paths_are 1 || { echo "$(live_paths | wc -l) paths are live"; return 1; }
	fio_ends 300 || status=$?
	((status == 0)) || { echo "fio ended with status $status"; return 1; }
}

device_up
target_up 64
defer host_down
defer allow_any_host
authentication
make_dummy ndkpath1 10.81.0.1
defer drop_dummy ndkpath1
check "a second device" second_device
defer del_link_if_there "$SECOND"
defer second_port_down
check "a port on it" second_port 10.81.0.1
check "connect by the first" host_connect -i 2
check "connect by the second" connect_second
check "two paths" wait_for 90 paths_are 2
check "one disk" wait_for 90 namespace
DISK=$(namespace)
check "both paths are used" put round-robin "$(echo /sys/class/nvme-subsystem/*/iopolicy)"
check "one path goes, no I/O fails" one_path_goes
check "the device again" second_device
second_port_down
check "the port again" second_port 10.81.0.1
# The host has deleted the controller with its device: it has to be asked again.
check "connect by the second again" connect_second
check "two paths again" wait_for 90 paths_are 2
check "verified I/O over both" fio_verify both "$DISK" randrw 4k 1m
check "disconnect all" host_down
check "second port removed" second_port_down
check "target removed" port_down
check "no resources left" wait_for 90 no_resources
finish
