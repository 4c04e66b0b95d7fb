#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The C sample: a module of its own that reaches the device through the tables of
# ndk, by the adapter's name and by its address, and holds ndk while it is loaded.
#
# seconds: 1200
# also: stock
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

check "no resources left" wait_for 90 no_resources
check "device removed" del_link "$DEVICE"
check "ndk unloads" unload_modules
finish
