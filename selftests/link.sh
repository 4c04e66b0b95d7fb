#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Links: added and deleted on every kind of network device, several at once, with
# names that last, duplicates and bad arguments refused, state following the network device,
# name spaces, and loading by alias.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

CYCLES=${CYCLES:-20}
MOVES=${MOVES:-12}

cycles() {
	local i
	for ((i = 1; i <= CYCLES; i++)); do
		add_link "$DEVICE" "$1" || { echo "add $i failed"; return 1; }
		has_link "$DEVICE" || { echo "not there after add $i"; return 1; }
		del_link "$DEVICE" || { echo "delete $i failed"; return 1; }
		! has_link "$DEVICE" || { echo "still there after delete $i"; return 1; }
	done
}

several() {
	local n
	for n in 1 2 3; do
		add_link "$NDK_TYPE$n" "ndkdum$n" || return
	done
	for n in 1 2 3; do
		wait_for 90 link_is "$NDK_TYPE$n" ACTIVE || return
	done
	names_differ node_guid || { echo "GUIDs are not unique"; return 1; }
	names_differ ports/1/gids/0 || { echo "GIDs are not unique"; return 1; }
	for n in 2 1 3; do
		del_link "$NDK_TYPE$n" || return
	done
}

# names_differ FILE: three devices, three values, none of them zero.
names_differ() {
	local -a values
	mapfile -t values < <(cat /sys/class/infiniband/"$NDK_TYPE"[123]/"$1" | grep '[1-9a-f]' | sort -u)
	((${#values[@]} == 3))
}

# identity: what consumers may have saved of the device.
identity() {
	(cd "/sys/class/infiniband/$DEVICE" && cat node_guid sys_image_guid ports/1/gids/0)
}

# lasting NETDEV: the device is the same one when it is added again.
lasting() {
	local first
	add_link "$DEVICE" "$1" || return
	first=$(identity) && del_link "$DEVICE" && add_link "$DEVICE" "$1" || return
	[[ $(identity) == "$first" ]] || { echo "$first became $(identity)"; return 1; }
	! is_eui48 "$1" || { echo "siw's name: $first"; return 1; }
	del_link "$DEVICE"
}

# is_eui48 NETDEV: the GUID is what siw and rxe make of the MAC address, as IPv6 does.
is_eui48() {
	local -a m
	local eui48
	IFS=: read -ra m <"/sys/class/net/$1/address"
	printf -v eui48 '%02x%s:%sff:fe%s:%s%s' $((0x${m[0]} ^ 2)) "${m[@]:1}"
	[[ $(<"/sys/class/infiniband/$DEVICE/node_guid") == "$eui48" ]]
}

# distinct NETDEV...: they have one MAC address and each a name of its own, which lasts.
distinct() {
	local mac netdev
	local -A names=()
	mac=$(<"/sys/class/net/$1/address")
	for netdev; do
		[[ $(<"/sys/class/net/$netdev/address") == "$mac" ]] || { echo "$netdev has another address"; return 1; }
		lasting "$netdev" && add_link "$DEVICE" "$netdev" || return
		names[$(identity)]=$netdev
		del_link "$DEVICE" || return
	done
	((${#names[@]} == $#)) || { echo "$# devices, ${#names[@]} names"; return 1; }
}

# stack NETDEV: devices with its MAC address: a bridge, a VLAN, and a VLAN of that with the same
# number.
stack() {
	ip link add ndkbr0 address "$(<"/sys/class/net/$1/address")" type bridge || return
	ip link add link "$1" name ndkvlan0 type vlan id 5 || return
	ip link add link ndkvlan0 name ndkvlan1 type vlan id 5
}

unstack() {
	ip link del ndkbr0 || true
	ip link del ndkvlan0 || true
}

# Shared mode, the default: every name space sees the device.
shared_names() {
	ip netns exec ndkns rdma dev show "$DEVICE"
}

# moved_while_added TIMES: a link goes with the network device that leaves the name space while it is
# added, whichever is first.
moved_while_added() {
	local i pid
	for ((i = 1; i <= $1; i++)); do
		ip link add ndkmove0 type dummy || return
		limit 120 rdma link add "${NDK_TYPE}8" type "$NDK_TYPE" netdev ndkmove0 &
		pid=$!
		sleep "0.0$((i % 6))"
		ip link set ndkmove0 netns ndkns || return
		wait "$pid" || true
		wait_for 90 eval "! has_link ${NDK_TYPE}8" || { echo "it stayed in round $i"; return 1; }
		ip -n ndkns link del ndkmove0 || return
	done
}

# Exclusive mode: the device is where it was moved to, and comes back.
exclusive_names() {
	# Not while another name space is on its way out.
	wait_for 120 limit 120 rdma system set netns exclusive || return
	ip netns add ndkns2 || return
	rdma dev set "$DEVICE" netns ndkns2 || return
	! rdma dev show "$DEVICE" 2>/dev/null || { echo "still in the first name space"; return 1; }
	ip netns exec ndkns2 rdma dev show "$DEVICE" || return
	ip netns del ndkns2 || return
	wait_for 90 rdma dev show "$DEVICE"
}

back_to_shared() {
	ip netns del ndkns2 2>/dev/null || true
	wait_for 120 limit 120 rdma system set netns shared
}

by_alias() {
	unload_modules || return
	[[ $NETDEV == lo ]] || make_dummy "$NETDEV" "$ADDRESS"
	add_link "$DEVICE" "$NETDEV" || return
	[[ -d /sys/module/$MODULE ]]
}

# iw_cm_stays: references to its identifiers are given back by its own code.
iw_cm_stays() {
	# A kernel that has it built in has no such folder.
	[[ ! -d /sys/module/iw_cm/holders || -e /sys/module/iw_cm/holders/ndk ]] || { echo "ndk does not hold iw_cm"; return 1; }
}

# --- the name of the type

# under_name TYPE: a link of that type, and none of its own.
under_name() {
	modprobe ndk "link_type=$1" || return
	[[ $(</sys/module/ndk/parameters/link_type) == "$1" ]] || { echo "not in sysfs"; return 1; }
	[[ $(</sys/module/ndk/parameters/rnr_timeout_ms) == 30000 ]] || { echo "no rnr_timeout_ms in sysfs"; return 1; }
	limit 120 rdma link add named0 type "$1" netdev lo || return
	wait_for 90 link_is named0 ACTIVE || { echo "not active"; return 1; }
	! limit 120 rdma link add named1 type ndk netdev ndkdum2 2>/dev/null ||
		{ echo "the type ndk is there, too"; return 1; }
	del_link named0 && limit 120 modprobe -r ndk
}

# not_loaded ERROR LOG OPTION: modprobe fails with that error, and the kernel log says why.
not_loaded() {
	local said before
	before=$(dmesg | grep -cF "$2") || true
	! said=$(limit 120 modprobe ndk "$3" 2>&1) || { echo "$3 is accepted"; return 1; }
	[[ $said == *"$1"* ]] || { echo "modprobe says: $said"; return 1; }
	[[ ! -e /sys/module/ndk ]] || { echo "it is loaded all the same"; return 1; }
	(($(dmesg | grep -cF "$2") > before)) || { echo "no word of it in the log"; return 1; }
}

# no_link: rdma link add is refused for a network device that is none for RDMA, and the log says why.
no_link() {
	local said before
	ip link add ndkgre0 type gre local 10.78.1.1 remote 10.78.1.2 || return
	before=$(dmesg | grep -c 'ndkgre0: is of ARP hardware type 778') || true
	said=$(refused limit 120 rdma link add ndk9 type ndk netdev ndkgre0) || { echo "$said"; return 1; }
	ip link del ndkgre0
	[[ $said == *"Invalid argument"* ]] || { echo "$said"; return 1; }
	(($(dmesg | grep -c 'ndkgre0: is of ARP hardware type 778') > before)) || { echo "no word of it in the log"; return 1; }
}

beside() {
	local status=0
	modprobe "$2" || return
	not_loaded "Device or resource busy" "link_type=$1: the module $2 is loaded" "link_type=$1" || status=$?
	limit 120 modprobe -r "$2" && return "$status"
}

# What a script does that knows of siw alone, with a few lines of configuration.
instead_of_siw() {
	modprobe siw || { echo "modprobe siw fails"; return 1; }
	[[ -e /sys/module/ndk && ! -e /sys/module/siw ]] || { echo "that did not load ndk"; return 1; }
	limit 120 rdma link add siw0 type siw netdev lo || return
	wait_for 90 link_is siw0 ACTIVE || return
	limit 120 modprobe -r siw || { echo "modprobe -r siw fails"; return 1; }
	[[ ! -e /sys/module/ndk ]] || { echo "modprobe -r siw leaves ndk"; return 1; }
	limit 120 rdma link add siw0 type siw netdev lo || { echo "not loaded by rdma link add"; return 1; }
	[[ -e /sys/module/ndk ]] || return
	del_link siw0 && limit 120 modprobe -r siw
}

names_of_others() {
	local pair
	check "named siw" under_name siw
	check "named rxe" under_name rxe
	check "no such name" not_loaded "Invalid argument" "link_type=nosuch is none of ndk, siw, rxe" link_type=nosuch
	check "an empty name" not_loaded "Invalid argument" "link_type= is none of" link_type=
	for pair in "siw siw" "rxe rdma_rxe"; do
		# shellcheck disable=SC2086
		! modinfo -n "${pair#* }" >/dev/null 2>&1 || check "beside ${pair#* }" beside $pair
	done
	cp "$(dirname "$0")/siw-is-ndk.conf" /etc/modprobe.d/
	defer rm -f /etc/modprobe.d/siw-is-ndk.conf
	check "a script for siw" instead_of_siw
}

load_modules
defer unload_modules
modprobe veth
for n in 1 2 3; do
	make_dummy "ndkdum$n" "10.78.$n.1"
	defer drop_dummy "ndkdum$n"
done
ip link add ndkveth0 type veth peer name ndkveth1
defer ip link del ndkveth0
ip addr add 10.79.0.1/24 dev ndkveth0
ip link set ndkveth0 up
ip link set ndkveth1 up
defer del_link_if_there "$DEVICE"

check "$CYCLES cycles on $NETDEV" cycles "$NETDEV"
CYCLES=5
check "5 cycles on dummy" cycles ndkdum1
check "5 cycles on veth" cycles ndkveth0
check "several devices at once" several
if [[ $NDK_TYPE == ndk ]]; then
	check "the same device again, without a MAC address" lasting lo
	check "the same device again" lasting ndkdum1
	check "other kinds of devices" modprobe -a bridge 8021q ip_gre
	check "a stack of devices" stack ndkdum1
	check "one MAC address, several devices" distinct ndkdum1 ndkbr0 ndkvlan0 ndkvlan1
	unstack
	check "not on a GRE tunnel" no_link
fi

check "add" add_link "$DEVICE" ndkdum1
refuse "the same name and device again" rdma link add "$DEVICE" type "$NDK_TYPE" netdev ndkdum1
refuse "the same name on another device" rdma link add "$DEVICE" type "$NDK_TYPE" netdev ndkdum2
refuse "another name on the same device" rdma link add "${NDK_TYPE}9" type "$NDK_TYPE" netdev ndkdum1
refuse "no such network device" rdma link add "${NDK_TYPE}9" type "$NDK_TYPE" netdev nosuch0
refuse "no such type" rdma link add "${NDK_TYPE}9" type nosuch netdev ndkdum2
refuse "a name with a percent sign" rdma link add "ndk%d" type "$NDK_TYPE" netdev ndkdum2
refuse "a name that is too long" rdma link add "$(printf 'n%.0s' {1..80})" type "$NDK_TYPE" netdev ndkdum2
refuse "an empty name" rdma link add "" type "$NDK_TYPE" netdev ndkdum2
refuse "deleting what is not there" rdma link delete nosuch0
check "still there after all that" has_link "$DEVICE"

check "active" wait_for 90 link_is "$DEVICE" ACTIVE
ip link set ndkdum1 down
check "down with the network device" wait_for 90 link_is "$DEVICE" DOWN
ip link set ndkdum1 up
check "up with the network device" wait_for 90 link_is "$DEVICE" ACTIVE

ip netns add ndkns
defer ip netns del ndkns
check "shared: seen from a name space" shared_names
[[ $NDK_TYPE != ndk ]] || check "gone with a network device that leaves" moved_while_added "$MOVES"
ip netns del ndkns
defer back_to_shared
check "exclusive: moved and back" exclusive_names
back_to_shared || true

check "gone with its network device" drop_dummy ndkdum1
check "no device is left behind" wait_for 90 eval "! has_link $DEVICE"

check "loaded by alias" by_alias
check "iw_cm stays as long" iw_cm_stays
check "delete" del_link "$DEVICE"
check "unload" unload_modules
[[ $NDK_TYPE != ndk ]] || names_of_others
finish
