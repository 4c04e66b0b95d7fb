#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The C sample: a module of its own that reaches the device through the tables of
# ndk, by the adapter's name and by its address, and holds ndk while it is loaded.
# Names are those of the moment, also when devices were renamed, and of the network
# namespace.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# said TEXT: how often the sample has written it.
said() { dmesg | grep -c "ndk_echo: $1\$" || true; }

drop_sample() {
	[[ ! -d /sys/module/ndk_echo ]] || limit 120 rmmod ndk_echo
}

# echo_with [PARAMETER=VALUE]...: it loads, and says so once.
echo_with() {
	local before
	before=$(said ok)
	limit 120 modprobe ndk_echo "$@" || { dmesg | grep ndk_echo: | tail -n 1; return 1; }
	[[ $(said ok) == $((before + 1)) ]]
}

# refused_with STATUS [PARAMETER=VALUE]...: a load may fail for many reasons; the
# sample must name this one, and be gone.
refused_with() {
	local before status=$1
	shift
	before=$(said ".* status $status")
	! limit 120 modprobe ndk_echo "$@" || { echo "was accepted"; return 1; }
	[[ $(said ".* status $status") == $((before + 1)) && ! -d /sys/module/ndk_echo ]]
}

users_of_ndk() { [[ $(</sys/module/ndk/refcnt) == "$1" ]]; }

device_up
defer drop_sample

check "echo by name" echo_with
refuse "ndk stays while the sample is loaded" rmmod ndk
check "ndk is still there" has_link "$DEVICE"
check "the sample unloads" drop_sample
check "nobody holds ndk" users_of_ndk 0

check "echo by address" echo_with device= address="$ADDRESS" port=18516
check "it unloads, too" drop_sample
check "echo over IPv6" echo_with device= address=::1
check "and so does that" drop_sample

check "no adapter of that name" refused_with 0xc0010006 device=ndk7
check "no adapter of that address" refused_with 0xc0010006 device= address=192.0.2.77
check "not an address of the adapter" refused_with 0xc0000141 address=192.0.2.77
check "nobody holds ndk after failures" users_of_ndk 0

# rename FROM TO: the device, and by name in the log, in traces and in debugfs.
rename() { limit 120 rdma dev set "$1" name "$2"; }

# folders NAME...: of faults, where the kernel has them, for these devices and no others.
folders() {
	local all=${FAULTS%/*}
	[[ ! -d $all ]] || [[ $(cd "$all" && echo *) == "$*" ]]
}

# traced_as NAME COMMAND...: what the command has sent was traced under that name alone.
traced_as() {
	local name=$1 status=0
	shift
	trace_mount || { "$@"; return; }
	echo >"$TRACING/trace"
	put 1 "$TRACING/events/ndk/ndk_post_send/enable"
	"$@" || status=1
	put 0 "$TRACING/events/ndk/ndk_post_send/enable"
	grep -q "dev=$name " "$TRACING/trace" || { echo "nothing of $name"; status=1; }
	! grep "ndk_post_send" "$TRACING/trace" | grep -v "dev=$name " || status=1
	return "$status"
}

# Exclusive mode: the device is in a name space of its own.
alone() {
	# Not while another name space is on its way out.
	wait_for 120 limit 120 rdma system set netns exclusive || return
	ip netns add ndkaway && rdma dev set "$1" netns ndkaway
}

share_again() {
	ip netns del ndkaway 2>/dev/null || true
	wait_for 120 limit 120 rdma system set netns shared
}

come_back() { share_again && wait_for 90 has_link "$1"; }

OLD=${NDK_TYPE}old
check "rename" rename "$DEVICE" "$OLD"
check "by the new name" traced_as "$OLD" echo_with device="$OLD"
check "it unloads after that" drop_sample
check "not by the old name" refused_with 0xc0010006 device="$DEVICE"
check "its faults have the new name" folders "$OLD"
check "another network device" make_dummy ndkother 10.78.0.1
defer drop_dummy ndkother
check "another device gets the name" add_link "$DEVICE" ndkother
check "each has its faults" folders "$DEVICE" "$OLD"
check "the other one has the name" traced_as "$DEVICE" \
	echo_with device="$DEVICE" address=10.78.0.1
check "and unloads" drop_sample
check "the name is not the first one's" refused_with 0xc0000141 device="$DEVICE"
check "that has its own" echo_with device="$OLD"
check "and unloads, too" drop_sample
check "the other one goes" del_link "$DEVICE"
check "the name is free" refused_with 0xc0010006 device="$DEVICE"

defer share_again
check "exclusive: moved" alone "$OLD"
check "not by name from the first name space" refused_with 0xc0010006 device="$OLD"
check "nor by address" refused_with 0xc0010006 device= address="$ADDRESS"
check "back again" come_back "$OLD"
check "by name again" wait_for 90 echo_with device="$OLD"
check "it unloads at last" drop_sample
check "the old name again" rename "$OLD" "$DEVICE"
check "by that" echo_with
check "the last unload" drop_sample
check "nobody holds ndk after renames" users_of_ndk 0

check "no resources left" wait_for 90 no_resources
check "device removed" del_link "$DEVICE"
check "ndk unloads" unload_modules
finish
