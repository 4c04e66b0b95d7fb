# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read by their name
#
# The SCSI RDMA protocol, connected through the RDMA connection manager: the kernel's
# target (ib_srpt) and its initiator (ib_srp).

. "$(dirname "${BASH_SOURCE[0]}")/../lio.sh"

srp_kind=disk
srp_recovers=service
srp_retries=no

SRP_STORE=ndk-srp
SRPT=$TARGET/srpt
SRP_PORT=5555

# What the target calls a port of the device: the lower half of its GID.
srp_port_name() {
	local gid
	gid=$(<"/sys/class/infiniband/$DEVICE/ports/1/gids/0") && echo "${gid: -19}"
}

# The group of the port that is served; its name stays when the device has gone.
srp_group() {
	local dir
	for dir in "$SRPT"/*/tpgt_1; do
		[[ ! -d $dir ]] || { echo "$dir"; return; }
	done
	return 1
}

srp_serve() {
	# The initiator tries again soon, and keeps what it has to do until then; the kernel takes
	# ten minutes at most. The second time has to be longer than the first, and is 600 until it
	# is set.
	modprobe -a ib_srpt sd_mod &&
		modprobe ib_srp reconnect_delay=2 dev_loss_tmo="$(slowly 240)" \
			fast_io_fail_tmo="$(slowly 120 600)" &&
		lio_store_up "$SRP_STORE" "$2" &&
		mkdir -p "$SRPT" &&
		srp_group_up "$1" &&
		srp_start "$1"
}

# srp_group_up ADDRESS: what an initiator with that address may use.
srp_group_up() {
	local group
	group=$SRPT/$(srp_port_name)/tpgt_1 &&
		mkdir -p "$group/lun/lun_0" &&
		ln -s "$HBA/$SRP_STORE" "$group/lun/lun_0/store" &&
		srp_allow "$1"
}

# srp_allow ADDRESS: an initiator more.
srp_allow() {
	local group acl
	group=$(srp_group) &&
		acl=$group/acls/$(srp_initiator "$1") &&
		mkdir "$acl" && mkdir "$acl/lun_0" &&
		ln -s "$group/lun/lun_0" "$acl/lun_0/lun"
}

# srp_initiator ADDRESS: an initiator's name is its address, the long form of IPv6.
srp_initiator() {
	if [[ $1 == *:* ]]; then
		python3 -c 'import ipaddress, sys; print(ipaddress.ip_address(sys.argv[1]).exploded)' "${1%%%*}"
	else
		echo "$1"
	fi
}

# The order matters: an access list with a channel that has lost its initiator cannot
# be removed, and only a group that is disabled lets go of those.
srp_group_down() {
	local group acl
	group=$(srp_group) || return 0
	put 0 "$group/enable" || return
	wait_for 90 srp_no_sessions "$group" || { echo "sessions stay"; return 1; }
	for acl in "$group"/acls/*; do
		[[ -d $acl ]] || continue
		unlink_all "$acl/lun_0"
		remove "$acl/lun_0" "$acl" || return
	done
	unlink_all "$group/lun/lun_0"
	remove "$group/lun/lun_0" "$group" "${group%/*}"
}

# Whether no initiator has a session; what tells of one cannot be read without.
srp_no_sessions() {
	! cat "$1"/acls/*/lun_0/statistics/scsi_att_intr_port/indx
}

srp_unserve() {
	srp_group_down || true
	if [[ -d $SRPT ]]; then
		put 0 "$SRPT/discovery_auth/rdma_cm_port" || true
		remove "$SRPT" || true
	fi
	lio_store_down "$SRP_STORE"
	limit 120 modprobe -r ib_srp || true
	limit 120 modprobe -r ib_srpt || true
	limit 120 modprobe -r target_core_iblock || true
	limit 120 modprobe -r null_blk || true
}

srp_start() {
	put "$SRP_PORT" "$SRPT/discovery_auth/rdma_cm_port" &&
		put 1 "$(srp_group)/enable"
}

srp_stop() {
	put 0 "$SRPT/discovery_auth/rdma_cm_port" &&
		put 0 "$(srp_group)/enable"
}

# The target's directories are of the device that has gone.
srp_revive() {
	srp_group_down && srp_group_up "$1" && put 1 "$(srp_group)/enable"
}

# --- the initiator

# srp_add ADDRESS [PORT [EXTENSION]]: one connection.  Two of the same extension are one
# initiator port twice, which is refused; so is a new one as long as the initiator lists
# the last, and it does a moment longer than sysfs (srp_remove_target()).
srp_add() {
	local id address=$1
	[[ $1 != *:* ]] || address="[$1]"
	id=$(</sys/module/ib_srpt/parameters/srpt_service_guid) || return
	id=${id#0x}
	wait_for 90 srp_add_unlisted "id_ext=$id,ioc_guid=$id,dest=$address:${2:-$SRP_PORT},initiator_ext=${3:-0},max_sect=2048" || true
	((srp_status == 0)) || echo "$srp_said"
	return "$srp_status"
}

# srp_add_unlisted VALUE: add a port; a failure only if the initiator lists it already.
srp_add_unlisted() {
	srp_status=0
	srp_said=$(limit_put 120 "$1" "/sys/class/infiniband_srp/srp-$DEVICE-1/add_target" 2>&1) || srp_status=$?
	((srp_status == 0)) || [[ $srp_said != *"File exists"* ]]
}

# limit_put SECONDS VALUE FILE: put, where the kernel may take its time.
limit_put() {
	# shellcheck disable=SC2016 # that shell's own arguments
	limit "$1" bash -c 'printf %s "$0" >"$1"' "$2" "$3"
}

srp_ports() {
	local dir
	for dir in /sys/class/srp_remote_ports/port-*; do
		[[ ! -e $dir ]] || echo "$dir"
	done
}

srp_identity() { srp_ports; }

srp_ports_are() { [[ $(srp_ports | wc -l) == "$1" ]]; }

srp_connect() {
	srp_add "$1" && wait_for 90 srp_place && disks_are_patient "$SRP_STORE"
}

srp_disconnect() {
	local port
	for port in $(srp_ports); do
		put 1 "$port/delete" || true
	done
	wait_for 90 srp_ports_are 0 || { echo "ports stay"; return 1; }
	wait_for 90 scsi_disks_are "$SRP_STORE" 0 || { echo "disks stay"; return 1; }
}

srp_place() { first_disk "$SRP_STORE"; }

# Another initiator port: the one that is connected would be refused for that alone.
srp_attempt() { srp_add "$1" "$2" ffff; }

srp_crowd() {
	local i status=0
	local -a pids=()
	for ((i = 1; i <= $2; i++)); do
		srp_add "$1" "" "$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	((status == 0)) || { echo "not all connect"; return 1; }
	wait_for 90 scsi_disks_are "$SRP_STORE" "$2" || { echo "$(scsi_disks "$SRP_STORE" | wc -l) disks"; return 1; }
	disks_are_patient "$SRP_STORE"
}

srp_uncrowd() { srp_disconnect; }
