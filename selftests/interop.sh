#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# iWARP over TCP with siw at the other end, both ways round: every operation of a consumer in the
# kernel, with CRCs and without; NVMe with verified I/O.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

SUITE=ndk_consumer_interop
KUNIT=/sys/module/kunit/parameters
MPA_CRC=/sys/module/ndk/parameters/mpa_crc

# operations WITH: each case of the suite, which runs when its module is loaded.
operations() {
	local results=/sys/kernel/debug/kunit/$SUITE/results failed line name count=0
	if ! modinfo -n ndk_consumer_test >/dev/null 2>&1; then
		echo "# operations were not looked at: no module ndk_consumer_test here"
		return
	fi
	put "$SUITE" "$KUNIT/filter_glob"
	check "$1: the suite runs" limit 600 modprobe ndk_consumer_test \
		"addr=$NEAR" "peer=$FAR" "peer_dev=$FAR_DEVICE" "dev=$NEAR_DEVICE" netdev= "slow=$NDK_SLOW"
	while read -r line; do
		name=${line#*ok [0-9]* }
		failed=$(grep -m 1 "# $name: .*FAILED at" "$results") || true
		case $line in
		*"# SKIP"*) not_ok "$1: $name" "skipped" ;;
		ok*) ok "$1: $name" ;;
		*) not_ok "$1: $name" "${failed:-see the kernel log}" ;;
		esac
		count=$((count + 1))
	done < <(grep -E '^    (not )?ok [0-9]+ ' "$results")
	((count > 0)) || not_ok "$1: the suite has cases"
	check "$1: the suite goes" limit 120 rmmod ndk_consumer_test
}

# The bytes that the first three patterns write, and read again.
LEAST=$((13 * 1024 * 1024))

# nvme_between WAY SERVER HOST
nvme_between() {
	local disk out in
	out=$(counter bytes_out) in=$(counter bytes_in)
	target_up 64 "$2" || { not_ok "nvme, $1: target"; return; }
	ADDRESS=$2
	check "nvme, $1: connect" host_connect -i 2 --host-traddr "$3"
	wait_for 90 namespace || { not_ok "nvme, $1: disk"; target_down; return; }
	disk=$(namespace)
	check "nvme, $1: verify 4 KiB random" fio_verify r4k "$disk" randwrite 4k 1m
	check "nvme, $1: verify 64 KiB sequential" fio_verify s64k "$disk" write 64k 4m
	check "nvme, $1: verify 1 MiB sequential" fio_verify s1m "$disk" write 1m 8m
	check "nvme, $1: verify mixed" fio_verify mixed "$disk" randrw 4k 1m --bsrange=4k-64k --bs_unaligned=0 --blockalign=4k
	check "nvme, $1: over the wire" moved $((out + LEAST)) $((in + LEAST))
	check "nvme, $1: disconnect" host_disconnect
	check "nvme, $1: controllers gone" wait_for 90 no_controllers
	check "nvme, $1: target removed" port_down
	target_down
	check "nvme, $1: no resources left" wait_for 90 no_resources
}

# moved OUT IN: so many bytes by now, over ndk's end.
moved() { (($(counter bytes_out) >= $1 && $(counter bytes_in) >= $2)); }

both_active() { link_is "$NEAR_DEVICE" ACTIVE && link_is "$FAR_DEVICE" ACTIVE; }

wire_modules
wire_up
check "two devices, of ndk and of siw" wait_for 90 both_active
operations "with CRCs"
put 0 "$MPA_CRC"
operations "without CRCs"
put 1 "$MPA_CRC"
each_way nvme_between
check "delete both devices" wire_down
finish
