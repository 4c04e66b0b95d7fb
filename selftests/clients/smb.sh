# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read by their name
#
# SMB Direct: ksmbd with a tmpfs, and cifs, set up with ksmbd-tools and cifs-utils. Both
# take port 5445 for iWARP by themselves.
#
# SMB_GLOBAL has further lines of ksmbd.conf, SMB_OPTIONS further options of the mount.

SMB_GLOBAL=
SMB_OPTIONS=
SMB_PORT=5445
SMB_EXPORT=/tmp/ndk-smb-export
SMB_MOUNT=/tmp/ndk-smb
SMB_RUN=/run/ndk-smb
SMB_USER=ndk
SMB_PASSWORD=ndk-password

smb_kind=folder
smb_recovers=yes

smb_serve() {
	modprobe -a ksmbd cifs || { echo "no modules"; return 1; }
	mkdir -p "$SMB_EXPORT" "$SMB_RUN"
	mount -t tmpfs -o "size=$(($2 + 16))m" ndk-smb "$SMB_EXPORT" || return
	smb_configure || return
	smb_start
}

smb_configure() {
	cat >"$SMB_RUN/ksmbd.conf" <<-END
		[global]
			netbios name = NDK
			guest account = root
			map to guest = never
			server min protocol = SMB3_00
			$SMB_GLOBAL

		[ndk]
			path = $SMB_EXPORT
			read only = no
			force user = root
			force group = root
	END
	rm -f "$SMB_RUN/users"
	limit 120 ksmbd.adduser -c "$SMB_RUN/ksmbd.conf" -i "$SMB_RUN/users" -a "$SMB_USER" -p "$SMB_PASSWORD"
}

smb_mounted() { mountpoint -q "$1"; }

smb_unserve() {
	local module status=0
	smb_stop || status=1
	! smb_mounted "$SMB_EXPORT" || wait_for 120 limit 120 umount "$SMB_EXPORT" || status=1
	# Not what both need, smbdirect: the leak that smb.sh knows of is told by its name.
	for module in cifs ksmbd; do
		[[ ! -e /sys/module/$module ]] || wait_for 120 limit 120 rmmod "$module" || status=1
	done
	((status == 0)) || echo "the server is not wholly gone"
	return "$status"
}

# The daemon ends with what it started; the kernel's part is told apart.
smb_stop() {
	[[ ! -e $SMB_RUN/pid ]] || limit 120 ksmbd.control -s || return
	[[ ! -e $SMB_RUN/pid ]] || wait_for 90 ended "$(<"$SMB_RUN/pid")" || return
	rm -f "$SMB_RUN/pid"
}

smb_start() {
	setsid ksmbd.mountd -n -c "$SMB_RUN/ksmbd.conf" -u "$SMB_RUN/users" \
		</dev/null >"$SMB_RUN/log" 2>&1 &
	echo $! >"$SMB_RUN/pid"
	wait_for 90 smb_listens || { echo "no listener"; return 1; }
}

smb_listens() {
	rdma -j resource show cm_id | jq -e --arg d "$DEVICE" --arg p ":$SMB_PORT" \
		'any(.[]; .ifname == $d and .state == "LISTEN" and (."src-addr" | endswith($p)))'
}

smb_revive() { wait_for 90 smb_listens; }

# smb_mount ADDRESS FOLDER [OPTIONS]: symbolic links are files of their own form on the
# server.
smb_mount() {
	local options=rdma,vers=3.1.1,hard,mfsymlinks,username=$SMB_USER,password=$SMB_PASSWORD
	mkdir -p "$2"
	limit 120 mount -t cifs -o "$options${3:+,$3}" "//$1/ndk" "$2" || return
	grep -q " $2 cifs.*,rdma" /proc/mounts || { echo "$2 is not mounted over RDMA"; return 1; }
}

smb_unmount() {
	smb_mounted "$1" || return 0
	limit 120 umount "$1" || { limit 120 umount -f -l "$1" && return 1; }
}

smb_connect() {
	echo "$1" >"$SMB_RUN/address"
	smb_mount_patiently "$1" "$SMB_MOUNT" "$SMB_OPTIONS"
}

smb_disconnect() { smb_unmount "$SMB_MOUNT"; }

smb_remount() {
	smb_disconnect && smb_connect "$(<"$SMB_RUN/address")"
}

smb_place() { echo "$SMB_MOUNT"; }

# The client tries 5445 and 445, whatever its option says, and the server listens on each
# IPv4 address of this host: nobody serves on an IPv6 address.
smb_attempt() {
	local status=0 address=$1
	[[ $(ip route get "$1" 2>/dev/null) != local* ]] || address=::1
	smb_mount "$address" "$SMB_MOUNT.none" "$SMB_OPTIONS" || status=$?
	! smb_mounted "$SMB_MOUNT.none" || umount "$SMB_MOUNT.none"
	return "$status"
}

# smb_mount_patiently ADDRESS FOLDER [OPTIONS]: once more where client or server has given a
# connection up after its own five seconds, or the client has after its twenty (EHOSTDOWN), as
# this machine is slow.
smb_mount_patiently() {
	local try before output
	for try in 1 2 3 4 5 6; do
		before=$(smb_given_up)
		output=$(smb_mount "$@" 2>&1) && return
		echo "$output"
		[[ $output == *"error(112)"* ]] || (($(smb_given_up) > before)) || return
		echo "smb: try $try was given up" >/dev/kmsg
	done
	return 1
}

# How often the kernel's log says so.
smb_given_up() { dmesg | grep -c '=> timeout sc->idle.keepalive=' || true; }

# smb_crowd ADDRESS N: as many mounts at once, each with a connection of its own.  Client
# and server give a connection five seconds, which many at once may need on a slow kernel:
# a mount has more tries.
smb_crowd() {
	local i status=0
	local -a pids=()
	for ((i = 0; i < $2; i++)); do
		smb_mount_again "$1" "$SMB_MOUNT.$i" nosharesock &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	((status == 0)) || { echo "not all are mounted"; return 1; }
	wait_for 90 smb_connections "$2" || { echo "$(resources qp) queue pairs, not $((2 * $2))"; return 1; }
}

# smb_mount_again ADDRESS FOLDER [OPTIONS]
smb_mount_again() {
	local try
	for try in 1 2 3 4 5 6; do
		smb_mount "$@" && return
		sleep "$try"
	done
	return 1
}

smb_connections() { (($(resources qp) == 2 * $1)); }

smb_uncrowd() {
	local folder
	for folder in "$SMB_MOUNT".*; do
		smb_unmount "$folder" || return
	done
	wait_for 90 smb_connections 0
}
