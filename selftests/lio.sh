# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel's SCSI target (LIO), which serves iSER and SRP: a disk in memory that can
# discard, and the disks that the initiators make of it.  Source it after lib.sh.

TARGET=/sys/kernel/config/target
HBA=$TARGET/core/iblock_0

# lio_store_up NAME MIB: the disk, and the target's storage object on it.
lio_store_up() {
	local store=$HBA/$1
	modprobe -a target_core_mod target_core_iblock sd_mod || return
	# Somebody else's may be loaded with disks of its own.
	[[ -d $NULLB ]] || modprobe null_blk nr_devices=0 || return
	mkdir "$NULLB/$1" &&
		put "$2" "$NULLB/$1/size" &&
		put 1 "$NULLB/$1/memory_backed" &&
		put 1 "$NULLB/$1/discard" &&
		put 512 "$NULLB/$1/blocksize" &&
		put 1 "$NULLB/$1/power" || return
	mkdir -p "$store" &&
		put "udev_path=$(null_disk "$1")" "$store/control" &&
		put 1 "$store/enable" &&
		put "$1" "$store/wwn/product_id" &&
		put "$1" "$store/wwn/vpd_unit_serial" &&
		put 1 "$store/attrib/emulate_tpu"
}

# The disk has the name of its directory, or on older kernels its index.
null_disk() {
	if [[ -b /dev/$1 ]]; then
		echo "/dev/$1"
	else
		echo "/dev/nullb$(<"$NULLB/$1/index")"
	fi
}

# lio_store_down NAME: may be called twice.
lio_store_down() {
	{ remove "$HBA/$1" && remove "$HBA"; } || true
	if [[ -d $NULLB/$1 ]]; then
		put 0 "$NULLB/$1/power" || true
		rmdir "$NULLB/$1" || true
	fi
}

# remove DIRECTORY...: of configfs, if it is there.
remove() {
	local dir
	for dir; do
		[[ ! -d $dir ]] || limit 120 rmdir "$dir" || return
	done
}

# unlink_all DIRECTORY: every symbolic link in that folder of configfs.
unlink_all() {
	limit 120 find "$1" -maxdepth 1 -type l -delete
}

# scsi_disks NAME: the disks that this host has of that store, one a line.
scsi_disks() {
	local dir disk
	for dir in /sys/class/scsi_disk/*/device; do
		[[ -e $dir/model && $(<"$dir/model") == "$1"* ]] || continue
		for disk in "$dir"/block/*; do
			[[ ! -b /dev/${disk##*/} ]] || echo "/dev/${disk##*/}"
		done
	done
}

# scsi_disks_are NAME N
scsi_disks_are() { [[ $(scsi_disks "$1" | wc -l) == "$2" ]]; }

# first_disk NAME
first_disk() {
	local disk
	disk=$(scsi_disks "$1" | head -n 1)
	[[ -n $disk ]] && echo "$disk"
}

# disks_are_patient NAME: its disks take no request for lost because this machine is slow.
disks_are_patient() {
	local disk
	for disk in $(scsi_disks "$1"); do
		put "$(slowly 60)" "/sys/block/${disk#/dev/}/device/timeout" || return
	done
}

# unmap_on DISK: the target of Linux 7.3 sends 44 bytes of block limits, and sd believes
# none but 64: it does not use UNMAP before it is told.
unmap_on() {
	local mode
	for mode in "/sys/block/${1##*/}"/device/scsi_disk/*/provisioning_mode; do
		[[ $(<"$mode") == unmap ]] || put unmap "$mode" || return
	done
}

# What is discarded reads as zeroes, and what is beside it as before.
scsi_discard() {
	local disk most
	disk=$(client place) && unmap_on "$disk" || return
	most=$(<"/sys/block/${disk##*/}/queue/discard_max_bytes")
	((most > 0)) || { echo "the disk takes no discard"; return 1; }
	head -c 4M /dev/urandom >/tmp/pattern
	dd if=/tmp/pattern of="$disk" bs=1M oflag=direct status=none &&
		limit 120 blkdiscard -o 1M -l 2M "$disk" &&
		dd if=/dev/zero of=/tmp/pattern bs=1M seek=1 count=2 conv=notrunc status=none &&
		dd if="$disk" of=/tmp/readback bs=1M count=4 iflag=direct status=none || return
	cmp /tmp/pattern /tmp/readback
}
