# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read by their name
#
# NFS over RDMA: nfsd with a tmpfs, and the kernel's NFS client, set up with nfs-utils.
#
# NFS_VERSION and NFS_OPTIONS say how nfs_connect mounts; nfs_mount mounts a second time.

NFS_VERSION=4.2
NFS_OPTIONS=
NFS_PORT=20049
NFS_EXPORT=/tmp/ndk-nfs-export
NFS_MOUNT=/tmp/ndk-nfs
NFS_RUN=/run/ndk-nfs
NFSD=/proc/fs/nfsd
# Seconds in which clients may claim what they had when the server comes back; no
# shorter time than ten is accepted, and none that is longer than an hour.  The server forgets a
# client that it has not heard of for so long when another wants what that has locked.
NFS_GRACE=$(slowly 20 3600)

nfs_kind=folder
# `yes` but for 127.0.0.1: where no device has that address, a connect is an error at once
# (ENODEV), which sunrpc hands to a hard mount, too.
nfs_recovers=service

nfs_serve() {
	nfs_modules || { echo "no modules"; return 1; }
	nfs_daemons || return
	mkdir -p "$NFS_EXPORT"
	mount -t tmpfs -o "size=$(($2 + 16))m" ndk-nfs "$NFS_EXPORT" || return
	# The root of NFSv4 is this folder: the guest's own root cannot be exported.
	limit 120 exportfs -o rw,async,fsid=0,no_root_squash,no_subtree_check,insecure "*:$NFS_EXPORT" || return
	nfs_start
}

# Reads and writes of a client on the server's own host would go by LOCALIO, past the
# device, where the kernel has that.
nfs_modules() {
	local localio=/sys/module/nfs/parameters/localio_enabled
	modprobe -a rpcrdma nfsd nfs nfsv3 nfsv4 || return
	[[ ! -e $localio ]] || put N "$localio"
	nfs_mounted "$NFSD" || mount -t nfsd nfsd "$NFSD" || return
	mkdir -p /run/rpc_pipefs
	nfs_mounted /run/rpc_pipefs || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
}

nfs_mounted() { mountpoint -q "$1"; }

# nfs_daemons: rpcbind, statd and mountd for NFSv3; mountd answers for the exports of all
# versions, and nfsdcld keeps which clients may claim what they had.
nfs_daemons() {
	mkdir -p "$NFS_RUN" /run/rpcbind /var/lib/nfs/nfsdcld /var/lib/nfs/v4recovery
	ip link set lo up
	# That of the last one stays, and statd ends without a word where nobody listens.
	rm -f /run/rpcbind.sock
	nfs_daemon rpcbind -f
	wait_for 120 nfs_rpcbind_answers || { echo "no rpcbind"; return 1; }
	nfs_daemon rpc.statd -F --no-notify
	nfs_daemon nfsdcld -F
	nfs_daemon rpc.mountd -F
	wait_for 120 nfs_registered mountd || { echo "no mountd"; return 1; }
	wait_for 120 nfs_registered status || { echo "no statd"; return 1; }
}

nfs_rpcbind_answers() { [[ -S /run/rpcbind.sock ]] && nfs_registered portmapper; }

nfs_registered() { limit 120 rpcinfo -T tcp 127.0.0.1 "$1"; }

# nfs_daemon COMMAND...: in the background, its pid in $NFS_RUN.
nfs_daemon() {
	setsid "$@" </dev/null >"$NFS_RUN/$1.log" 2>&1 &
	echo $! >"$NFS_RUN/$1.pid"
}

nfs_stop_daemons() {
	local file pid
	for file in "$NFS_RUN"/*.pid; do
		[[ -e $file ]] || continue
		pid=$(<"$file")
		kill "$pid" 2>/dev/null || true
		wait_for 60 ended "$pid" || kill -9 "$pid" || true
		rm -f "$file"
	done
}

nfs_unserve() {
	local status=0
	if nfs_mounted "$NFSD"; then
		nfs_stop_threads || status=1
		limit 120 exportfs -au || status=1
	fi
	nfs_stop_daemons
	! nfs_mounted "$NFS_EXPORT" || wait_for 120 limit 120 umount "$NFS_EXPORT" || status=1
	! nfs_mounted "$NFSD" || wait_for 120 limit 120 umount "$NFSD" || status=1
	! nfs_mounted /run/rpc_pipefs || wait_for 120 limit 120 umount /run/rpc_pipefs || status=1
	wait_for 120 limit 120 modprobe -r nfsd nfsv3 nfsv4 nfs rpcrdma || status=1
	((status == 0)) || echo "the server is not wholly gone"
	return "$status"
}

# The address is away meanwhile: a connect request that the server has not accepted when
# it stops is forgotten with all it holds (svc_rdma_free() leaves sc_accept_q alone), and no
# device that it came over can be removed any more.  A network device that is down is still
# the way to its own addresses.  127.0.0.1 stays: others need it.
nfs_stop() {
	local status=0 address
	address=$(cat "$NFS_RUN/address" 2>/dev/null) || true
	[[ $address != 127.* ]] || address=
	[[ -z $address ]] || address=$(ip -j addr show to "$address" | jq -er '[.[] |
		.ifname as $dev | .addr_info[]? | select(.local) | "\(.local)/\(.prefixlen) dev \($dev)"][0]') || return
	# shellcheck disable=SC2086 # words
	[[ -z $address ]] || limit 120 ip addr del $address || return
	nfs_stop_threads || status=1
	# shellcheck disable=SC2086 # words
	[[ -z $address ]] || limit 120 ip addr add $address || return
	return "$status"
}

nfs_stop_threads() { limit 120 rpc.nfsd 0; }

nfs_start() {
	limit 120 rpc.nfsd --rdma="$NFS_PORT" --grace-time "$NFS_GRACE" --lease-time "$NFS_GRACE" 8 || return
	grep -qx "rdma $NFS_PORT" "$NFSD/portlist" || { echo "no RDMA listener"; return 1; }
}

# The server listens on every address, of a device that comes later, too.
nfs_revive() { grep -qx "rdma $NFS_PORT" "$NFSD/portlist"; }

# nfs_mount ADDRESS FOLDER VERSION [OPTIONS]; an address of IPv6 is in brackets.
nfs_mount() {
	local path=/ proto=rdma
	[[ $1 != \[* ]] || proto=rdma6
	[[ $3 != 3 ]] || path=$NFS_EXPORT
	mkdir -p "$2"
	limit 120 mount -t nfs -o "proto=$proto,port=$NFS_PORT,vers=$3,retry=0${4:+,$4}" "$1:$path" "$2" || return
	grep -q " $2 nfs.*proto=rdma" /proc/mounts || { echo "$2 is not mounted over RDMA"; return 1; }
}

nfs_unmount() {
	nfs_mounted "$1" || return 0
	limit 120 umount "$1" || { limit 120 umount -f -l "$1" && return 1; }
}

nfs_connect() {
	mkdir -p "$NFS_RUN"
	echo "$1" >"$NFS_RUN/address"
	nfs_mount "$1" "$NFS_MOUNT" "$NFS_VERSION" "$NFS_OPTIONS"
}

nfs_disconnect() { nfs_unmount "$NFS_MOUNT"; }

nfs_remount() {
	nfs_disconnect && nfs_connect "$(<"$NFS_RUN/address")"
}

nfs_place() { echo "$NFS_MOUNT"; }

nfs_attempt() {
	local status=0
	mkdir -p "$NFS_MOUNT.none"
	limit 120 mount -t nfs -o "rdma,port=$2,vers=$NFS_VERSION,retry=0" "$1:/" "$NFS_MOUNT.none" || status=$?
	! nfs_mounted "$NFS_MOUNT.none" || umount "$NFS_MOUNT.none"
	return "$status"
}

# nfs_crowd ADDRESS N: one mount with N connections, which all are there when enough
# requests are under way.
nfs_crowd() {
	nfs_mount "$1" "$NFS_MOUNT" "$NFS_VERSION" "nconnect=$2" || return
	limit 120 fio --name=crowd --filename="$NFS_MOUNT/ndk-crowd" --rw=write --bs=4k --size=2m \
		--direct=1 --ioengine=libaio --iodepth=$((4 * $2)) --output=/dev/null || return
	wait_for 120 nfs_connections "$2" || { echo "$(resources qp) queue pairs, not $((2 * $2))"; return 1; }
}

# Each has a queue pair at either end.
nfs_connections() { (($(resources qp) == 2 * $1)); }

nfs_uncrowd() {
	rm -f "$NFS_MOUNT/ndk-crowd"
	nfs_disconnect && wait_for 120 nfs_connections 0
}
