#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFS over devices of each kind: on a dummy, veth, VLAN and bridge, with addresses of
# IPv4 and IPv6 and link-local ones; and NVMe over two devices of one host, the client on
# the one and the server on the other.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/client.sh"
use_client nfs

FAR=${NDK_TYPE}1

# up NETDEV NUMBER: its addresses 10.81.NUMBER.1 and fd00:81:NUMBER::1.
up() {
	ip addr add "10.81.$2.1/24" dev "$1" &&
		ip -6 addr add "fd00:81:$2::1/64" dev "$1" nodad &&
		ip link set "$1" up addrgenmode eui64
}

link_local() {
	ip -j -6 addr show dev "$1" scope link | jq -re '.[0].addr_info[] | select(.local) | .local'
}

no_longer_tentative() { [[ -z $(ip -6 addr show dev "$1" tentative) ]]; }

# over ADDRESS: verified I/O of a mount of that address, by queue pairs of the device.
over() {
	local status=0
	nfs_mount "$1" "$NFS_MOUNT" 4.2 || return
	wait_for 90 nfs_connections 1 || { echo "$(resources qp) queue pairs"; status=1; }
	client_verify "4k" randwrite 4k 256k || status=1
	client_verify "1m" write 1m 4m || status=1
	client disconnect && wait_for 90 nfs_connections 0 || status=1
	return "$status"
}

# kind NAME NETDEV NUMBER: a device on it, which goes with its network device.
kind() {
	up "$2" "$3" || { not_ok "$1: addresses"; return; }
	check "$1: add" add_link "$DEVICE" "$2"
	check "$1: IPv4" over "10.81.$3.1"
	check "$1: IPv6" over "[fd00:81:$3::1]"
	wait_for 60 no_longer_tentative "$2" || true
	check "$1: link-local" over "[$(link_local "$2")%$2]"
	check "$1: ip link del" limit 240 ip link del "$2"
	check "$1: the device is gone, too" wait_for 90 no_link
}

no_link() { ! has_link "$DEVICE"; }

make_veth() {
	ip link add ndkveth type veth peer name ndkpeer && ip link set ndkpeer up
}

make_vlan() {
	ip link add ndkbase type dummy && ip link set ndkbase up &&
		ip link add link ndkbase name ndkvlan type vlan id 7
}

make_bridge() {
	ip link add ndkbr type bridge && ip link add ndkport type dummy &&
		ip link set ndkport master ndkbr up
}

# Two devices, and NVMe, whose host says which address it connects from: each has one end
# of the admin queue and of two I/O queues.
make_two() {
	make_dummy ndknear 10.82.0.1 && make_dummy ndkaway 10.83.0.1 || return
	add_link "$DEVICE" ndknear && add_link "$FAR" ndkaway
}

drop_two() {
	host_down
	target_down
	drop_dummy ndknear
	drop_dummy ndkaway
}

# queue_pairs DEVICE
queue_pairs() {
	rdma -j resource show qp | jq --arg d "$1" '[.[] | select(.ifname == $d)] | length'
}

three_at_each() { [[ $(queue_pairs "$DEVICE") == 3 && $(queue_pairs "$FAR") == 3 ]]; }

from_one_to_the_other() {
	local disk
	target_up 32 10.82.0.1 || return
	ADDRESS=10.82.0.1 host_connect -i 2 --host-traddr 10.83.0.1 || return
	wait_for 90 namespace || { echo "no disk"; return 1; }
	disk=$(namespace)
	wait_for 90 three_at_each ||
		{ echo "$(queue_pairs "$DEVICE") and $(queue_pairs "$FAR") queue pairs"; return 1; }
	fio_verify 4k "$disk" randwrite 4k 512k && fio_verify 1m "$disk" write 1m 4m
}

defer unload_modules
load_modules
modprobe -a dummy veth 8021q bridge
defer client_down
client serve 127.0.0.1 32
ip link add ndkdum type dummy
kind dummy ndkdum 1
make_veth
kind veth ndkveth 2
make_vlan
defer ip link del ndkbase
kind VLAN ndkvlan 3
make_bridge
defer ip link del ndkport
kind bridge ndkbr 4
check "server down" client unserve
defer drop_two
check "two devices: add" make_two
check "two devices: client on one, server on the other" from_one_to_the_other
check "two devices: disconnect" host_down
check "two devices: target removed" port_down
check "two devices: no resources left" wait_for 90 no_resources
finish
