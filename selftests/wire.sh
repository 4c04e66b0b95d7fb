# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read where it is sourced
#
# Two network devices joined like by a cable, a device of ndk on one and of siw on the other: what
# they exchange is iWARP over TCP.  Source it after lib.sh.

# The addresses of ndk's end and of siw's.
NEAR=10.90.0.1
FAR=10.90.0.2
NEAR_DEVICE=ndk0
FAR_DEVICE=siw0

# wire_modules: a machine without siw has nothing for this.
wire_modules() {
	[[ $NDK_TYPE == ndk ]] || skip_all "the wire is ndk's"
	modinfo -n siw >/dev/null 2>&1 || skip_all "no module siw"
	modprobe -a ib_core rdma_cm ib_uverbs veth || return
	defer limit 120 modprobe -r siw
	defer limit 120 modprobe -r ndk
	load_module
}

# wire_up: both ends in one namespace, where the kernel's clients are.  The rules for what this
# host sends go before those that know its own addresses, so that it leaves by one end and comes in
# by the other.
wire_up() {
	local i
	ip link add ndkwire0 type veth peer name ndkwire1 || return
	defer limit 240 ip link del ndkwire0
	for i in 0 1; do
		put 0 "/proc/sys/net/ipv4/conf/ndkwire$i/rp_filter"
		put 1 "/proc/sys/net/ipv4/conf/ndkwire$i/accept_local"
	done
	put 0 /proc/sys/net/ipv4/conf/all/rp_filter
	ip addr add "$NEAR/32" dev ndkwire0 && ip addr add "$FAR/32" dev ndkwire1 || return
	ip link set ndkwire0 up && ip link set ndkwire1 up || return
	leads ndkwire0 "$NEAR" ndkwire1 "$FAR" 90 && leads ndkwire1 "$FAR" ndkwire0 "$NEAR" 91 || return
	defer ip rule del pref 100
	defer ip rule add pref 0 lookup local
	ip rule add pref 100 lookup local && ip rule del pref 0 || return
	add_link "$NEAR_DEVICE" ndkwire0 || return
	defer del_link_if_there "$NEAR_DEVICE"
	add_far_link ndkwire1 || return
	defer del_link_if_there "$FAR_DEVICE"
}

# leads FROM ADDRESS TO ADDRESS TABLE: what this host sends to the second leaves by the first.
leads() {
	local mac
	mac=$(<"/sys/class/net/$3/address") || return
	defer ip rule del pref "$5"
	defer ip route flush table "$5"
	ip neigh add "$4" lladdr "$mac" dev "$1" nud permanent &&
		ip route add "$4" dev "$1" src "$2" table "$5" &&
		ip rule add pref "$5" iif lo to "$4" lookup "$5"
}

add_far_link() { limit 120 rdma link add "$FAR_DEVICE" type siw netdev "$1"; }

# wire_down: the devices go; with their modules at the end.
wire_down() {
	del_link "$NEAR_DEVICE" && del_link "$FAR_DEVICE"
}

# each_way COMMAND...: with what it is called, the address that serves, and the other.
each_way() {
	"$@" "siw serves" "$FAR" "$NEAR"
	"$@" "ndk serves" "$NEAR" "$FAR"
}
