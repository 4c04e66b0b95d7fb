#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest, which runs Debian's kernel on the root where the package is installed:
# links by unit and by alias, the example, and NVMe.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

is_loaded() { [[ -d /sys/module/ndk ]]; }
is_active() { systemctl -q is-active "$1"; }
is_inactive() { ! is_active "$1"; }
no_link() { ! has_link "$1"; }

link_by_alias() {
	limit 60 modprobe -r ndk || return
	! is_loaded || { echo "the module cannot be unloaded"; return 1; }
	add_link ndk0 lo || return
	is_loaded || return
	wait_for 120 link_is ndk0 ACTIVE
}

unit_of_dummy() {
	limit 60 systemctl -q enable "$DUMMY_UNIT" || return
	modprobe dummy numdummies=0 && ip link add ndk-d type dummy || return
	wait_for 120 has_link ndk_ndk-d || { echo "no link ndk_ndk-d"; return 1; }
}

unit_goes_with_device() {
	ip link del ndk-d || return
	wait_for 120 no_link ndk_ndk-d && wait_for 120 is_inactive "$DUMMY_UNIT"
}

echo_once() {
	limit 60 insmod /share/sample/ndk_echo.ko && limit 20 rmmod ndk_echo
}

ok "guest: Linux $(uname -r) is up, $(cut -d. -f1 /proc/uptime) s"
check "guest: the enabled unit has added ndk_lo" wait_for 120 link_is ndk_lo ACTIVE
check "guest: and is active" is_active ndk@lo.service
check "guest: stopping it" limit 30 systemctl stop ndk@lo.service
check "guest: deletes the link" no_link ndk_lo
check "guest: rdma link add loads the module" link_by_alias
check "guest: the example runs" echo_once
check "guest: link deleted" del_link ndk0
DUMMY_UNIT=$(systemd-escape --template=ndk@.service ndk-d)
check "guest: an enabled unit adds a link to a device that comes later" unit_of_dummy
check "guest: ends with its device" unit_goes_with_device
finish
