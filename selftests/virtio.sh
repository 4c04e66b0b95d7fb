#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A link on a virtio card: its address, its state, and NVMe over it.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# A module in a distribution's kernel, which udev would load.
modprobe virtio_net || skip_all "there is no virtio_net"
compgen -G "/sys/bus/virtio/drivers/virtio_net/virtio*/net/*" >/dev/null || skip_all "there is no virtio card"
NETDEV=$(basename "$(readlink -f /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)")
ADDRESS=10.0.2.15

card_up() {
	ip addr add "$ADDRESS/24" dev "$NETDEV"
	ip link set "$NETDEV" up
}

card_down() {
	ip addr flush dev "$NETDEV"
	ip link set "$NETDEV" down
}

# The kernel's own measure is wrong on a busy machine (scripts/vm).
has_frequency() {
	local khz
	khz=$(sed -n 's/.*tsc_early_khz=\([0-9]*\).*/\1/p' /proc/cmdline)
	[[ -z $khz ]] || dmesg | grep -E "tsc: Detected ${khz::-3}\.${khz: -3} MHz (processor|TSC)"
}

check "the clock has its frequency from the host" has_frequency
check "card" card_up
defer card_down
modprobe -a ib_core rdma_cm ib_uverbs
load_module
defer modprobe -r "$MODULE"
check "add" add_link "$DEVICE" "$NETDEV"
defer del_link_if_there "$DEVICE"
check "active" wait_for 90 link_is "$DEVICE" ACTIVE
check "down with the card" ip link set "$NETDEV" down
check "state down" wait_for 90 link_is "$DEVICE" DOWN
check "up with the card" ip link set "$NETDEV" up
check "state active" wait_for 90 link_is "$DEVICE" ACTIVE

target_up 32
defer host_down
check "connect" host_connect -i 2
check "find the disk" wait_for 90 namespace
DISK=$(namespace || true)
[[ -z $DISK ]] || check "verified I/O" fio_verify virtio "$DISK" randwrite 16k 1m
check "disconnect" host_disconnect
check "target removed" port_down
check "no resources left" wait_for 90 no_resources
finish
