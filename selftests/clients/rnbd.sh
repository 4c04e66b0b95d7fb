# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read by their name
#
# RNBD, the block device over RTRS: its server with a null_blk disk, and its client.
# Both are told what to do in sysfs, and need no program.

rnbd_kind=disk
# I/O on a path that is lost ends with an error, unless the session has another one.
rnbd_recovers=no
# With one path: what is under way when that is lost ends with an error.
rnbd_fails_at='drop_connection complete_with refuse_access refuse_invalidation'
rnbd_cqs=shared
rnbd_retries=no

RNBD_MAP=/sys/class/rnbd-client/ctl/map_device
RNBD_DISKS=/sys/class/rnbd-client/ctl/devices
RNBD_STORE=$NULLB/ndkrnbd

rnbd_serve() {
	modprobe null_blk nr_devices=0 && rnbd_make_store "$2" &&
		modprobe rnbd-server && modprobe rnbd-client
}

rnbd_make_store() {
	mkdir "$RNBD_STORE" &&
		put "$1" "$RNBD_STORE/size" &&
		put 1 "$RNBD_STORE/memory_backed" &&
		put 512 "$RNBD_STORE/blocksize" &&
		put 1 "$RNBD_STORE/power" &&
		wait_for 60 rnbd_export
}

# The disk has the name of its folder, or on older kernels its index.
rnbd_export() {
	local name
	for name in ndkrnbd "nullb$(<"$RNBD_STORE/index")"; do
		if [[ -b /dev/$name ]]; then
			echo "dev/$name"
			return
		fi
	done
	return 1
}

# Each step even if the one before failed; the whole may be called twice.
rnbd_unserve() {
	local module
	for module in rnbd-client rtrs-client rnbd-server rtrs-server rtrs-core; do
		limit 120 modprobe -r "$module" || true
	done
	if [[ -d $RNBD_STORE ]]; then
		put 0 "$RNBD_STORE/power" || true
		rmdir "$RNBD_STORE" || true
	fi
	limit 120 modprobe -r null_blk || true
}

rnbd_stop() { limit 120 modprobe -r rnbd-server; }

# The client tries again 30 s after it lost the connection; here it is told to do so now.
rnbd_start() {
	modprobe rnbd-server && rnbd_reconnect
}

# The server listens wherever there is a device.
rnbd_revive() { :; }

# rnbd_write SECONDS VALUE FILE: one write, which may wait for the peer.
rnbd_write() {
	# shellcheck disable=SC2016 # the inner shell's arguments
	limit "$1" bash -c 'printf "%s" "$1" >"$2"' - "$2" "$3"
}

# rnbd_map SESSION ADDRESS [WORD=VALUE]...: a disk of that session, the other words as
# map_device has them.  A word that concerns the addresses has to stand before them.
rnbd_map() {
	rnbd_ask "$@" && wait_for 90 rnbd_disk "$1"
}

# rnbd_ask SESSION ADDRESS [WORD=VALUE]...: once more where the client's own half minute for a
# connection was over, as this machine is slow.
rnbd_ask() {
	local try start status said session=$1 address=$2
	shift 2
	for try in 1 2 3 4 5; do
		start=$SECONDS status=0
		said=$(rnbd_write 120 "sessname=$session $* path=ip:$address device_path=$(rnbd_export)" "$RNBD_MAP" 2>&1) || status=$?
		[[ $said == *"Connection timed out"* ]] || break
		((SECONDS - start >= 30)) || break
		echo "rnbd: try $try: $said" >/dev/kmsg
	done
	[[ -z $said ]] || echo "$said" >&2
	return "$status"
}

# rnbd_link SESSION: the entry of its disk in sysfs.
rnbd_link() {
	local link
	for link in "$RNBD_DISKS"/*"@$1"; do
		[[ -e $link ]] || continue
		echo "$link"
		return
	done
	return 1
}

# rnbd_disk SESSION: its disk.
rnbd_disk() {
	local link disk
	link=$(rnbd_link "$1") || return
	disk=/dev/$(basename "$(readlink -f "$link")")
	[[ -b $disk ]] && echo "$disk"
}

rnbd_state_is() {
	local link
	link=$(rnbd_link "$1") && [[ $(<"$link/rnbd/state") == "$2" ]]
}

# rnbd_unmap SESSION: its disk is gone, and so is the session on both sides.
rnbd_unmap() {
	local link
	link=$(rnbd_link "$1") || return 0
	rnbd_write 120 normal "$link/rnbd/unmap_device" || return
	wait_for 90 rnbd_no_session "$1"
}

rnbd_no_session() {
	[[ ! -e /sys/class/rtrs-client/$1 && ! -e /sys/class/rtrs-server/$1 ]]
}

# rnbd_path_file SESSION FILE: that of its first path, on the client.
rnbd_path_file() {
	local file
	for file in "/sys/class/rtrs-client/$1/paths/"*/"$2"; do
		[[ -e $file ]] || continue
		echo "$file"
		return
	done
	return 1
}

rnbd_connected() {
	local file
	file=$(rnbd_path_file "$1" state) && [[ $(<"$file") == connected ]]
}

rnbd_reconnect_now() {
	local file
	! rnbd_connected "$1" || return 0
	file=$(rnbd_path_file "$1" reconnect) && rnbd_write 120 1 "$file"
}

# rnbd_reconnect: the session of connect(), if it is there, and its disk is open again.
rnbd_reconnect() {
	[[ -e /sys/class/rtrs-client/ndk ]] || return 0
	wait_for 90 rnbd_reconnect_now ndk && wait_for 90 rnbd_state_is ndk open
}

rnbd_connect() { rnbd_map ndk "$1"; }

rnbd_disconnect() { rnbd_unmap ndk; }

rnbd_place() { rnbd_disk ndk; }

rnbd_attempt() { rnbd_ask nobody "$1" "dest_port=$2"; }

# One session each, and one of all may write.
rnbd_crowd() {
	local i status=0
	local -a pids=()
	for ((i = 0; i < $2; i++)); do
		rnbd_map "crowd$i" "$1" access_mode=ro &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	for ((i = 0; i < $2; i++)); do
		rnbd_state_is "crowd$i" open || { echo "crowd$i is not open"; return 1; }
		[[ -e /sys/class/rtrs-server/crowd$i ]] || { echo "the server has no crowd$i"; return 1; }
	done
	return "$status"
}

rnbd_uncrowd() {
	local link status=0
	for link in "$RNBD_DISKS"/*@crowd*; do
		[[ ! -e $link ]] || rnbd_unmap "${link##*@}" || status=1
	done
	return "$status"
}
