# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read by their name
#
# iSCSI over RDMA: the kernel's target (isert) and open-iscsi.

. "$(dirname "${BASH_SOURCE[0]}")/../lio.sh"

iser_kind=disk
iser_recovers=yes
# The target destroys a connection's rdma_cm_id first and what is on the device later
# (isert_connect_release()): a device that is removed in between is gone before that, and
# the kernel with it (docs/clients.md).  So the target is stopped before, under load.
iser_unplug=stopped
iser_cqs=shared

# A command that meets a connection which the initiator is giving up ends with an I/O error,
# and is not tried again (docs/faults.md).
iser_own_error() { log_since_mark | grep -q 'iscsi_iser_task_init: Failed to init task .*err = -19'; }

ISER_STORE=ndk-iser
ISER_IQN=iqn.2003-01.org.linux-iscsi:ndk-test
ISER_INITIATOR=iqn.1993-08.org.debian:01:ndk-test
ISER_TARGET=$TARGET/iscsi/$ISER_IQN
ISER_TPG=$ISER_TARGET/tpgt_1
ISER_PORT=3260

# iser_portal ADDRESS [PORT]: as configfs and open-iscsi write it.
iser_portal() {
	if [[ $1 == *:* ]]; then
		echo "[$1]:${2:-$ISER_PORT}"
	else
		echo "$1:${2:-$ISER_PORT}"
	fi
}

iser_serve() {
	modprobe -a ib_iser iscsi_target_mod ib_isert &&
		lio_store_up "$ISER_STORE" "$2" &&
		mkdir -p "$ISER_TPG/lun/lun_0" &&
		ln -s "$HBA/$ISER_STORE" "$ISER_TPG/lun/lun_0/store" &&
		put 0 "$ISER_TPG/attrib/authentication" &&
		put 1 "$ISER_TPG/attrib/generate_node_acls" &&
		put 0 "$ISER_TPG/attrib/demo_mode_write_protect" &&
		iser_start "$1" &&
		iscsid_up
}

iser_unserve() {
	iscsid_down
	iser_stop
	if [[ -d $ISER_TPG ]]; then
		unlink_all "$ISER_TPG/lun/lun_0"
		remove "$ISER_TPG/lun/lun_0" "$ISER_TPG" "$ISER_TARGET" "$TARGET/iscsi"
	fi
	lio_store_down "$ISER_STORE"
	limit 120 modprobe -r ib_iser || true
	limit 120 modprobe -r ib_isert || true
	limit 120 modprobe -r iscsi_target_mod || true
	limit 120 modprobe -r target_core_iblock || true
	limit 120 modprobe -r null_blk || true
}

# The portal first: what is enabled without one cannot be logged in to.
iser_start() {
	without_requests iser_listen "$1" && put 1 "$ISER_TPG/enable"
}

# A portal of configfs listens on TCP; the switch adds a listener on RDMA.
iser_listen() {
	local portal
	portal=$ISER_TPG/np/$(iser_portal "$1")
	mkdir "$portal" && put 1 "$portal/iser"
}

# The target ends the sessions itself.
iser_stop() {
	[[ ! -d $ISER_TPG ]] || without_requests iser_portals_go
}

# A connection may outlive its portal only where the kernel has patch 0022.
iser_portals_go() {
	local portal
	put 0 "$ISER_TPG/enable" || return
	is_own_kernel || wait_for 90 iser_at_rest || { echo "connections stay"; return 1; }
	for portal in "$ISER_TPG"/np/*; do
		remove "$portal" || return
	done
}

# without_requests COMMAND...: a portal that comes or goes may reject a request, of which an
# rdma_cm_id stays then, and the kernel does not survive the end of the device (docs/found.md,
# 0024).  The daemon alone tries again: where the kernel lacks the patch, it is held.
without_requests() {
	local pid status=0
	if is_own_kernel || ! pid=$(cat /run/iscsid.pid 2>/dev/null) || ended "$pid"; then
		"$@"
		return
	fi
	kill -STOP "$pid" && wait_for 60 is_held "$pid" && "$@" || status=$?
	kill -CONT "$pid" || return
	return "$status"
}

is_held() { grep -q '^State:[[:space:]]*T' "/proc/$1/status"; }

# The listener of an address goes with the device; that of a loopback address, which
# rdma_cm takes for all addresses, stays. That one must not be renewed: the initiator may
# have logged in by it again, and its connections use what goes with it (docs/clients.md).
iser_revive() {
	local portal
	! iser_listens || return 0
	portal=$ISER_TPG/np/$(iser_portal "$1")
	put 0 "$portal/iser" && without_requests put 1 "$portal/iser"
}

iser_at_rest() { ! rdma -d resource show qp | grep -qF '[ib_isert]'; }

iser_listens() { rdma resource show cm_id | grep -qE "state LISTEN .*:$ISER_PORT( |\$)"; }

# --- the initiator

# What its daemon keeps on disk begins anew.  A login that fails is tried once; what
# was logged in is tried again until the replacement time-out.
iscsid_up() {
	rm -rf /etc/iscsi/nodes /etc/iscsi/send_targets /etc/iscsi/ifaces
	mkdir -p /etc/iscsi /run/lock/iscsi
	echo "InitiatorName=$ISER_INITIATOR" >/etc/iscsi/initiatorname.iscsi
	cat >/etc/iscsi/iscsid.conf <<-END
		node.startup = manual
		node.leading_login = No
		node.session.initial_login_retry_max = 1
		node.session.timeo.replacement_timeout = $(slowly 120)
		node.conn[0].timeo.login_timeout = $(slowly 30)
		node.conn[0].timeo.logout_timeout = $(slowly 30)
		node.conn[0].timeo.noop_out_interval = $(slowly 5)
		node.conn[0].timeo.noop_out_timeout = $(slowly 30)
		node.session.queue_depth = 32
		node.session.scan = auto
	END
	limit 60 iscsid </dev/null >/dev/null 2>&1 && wait_for 60 test -s /run/iscsid.pid
}

iscsid_down() {
	local pid
	[[ -e /run/iscsid.pid ]] || return 0
	pid=$(</run/iscsid.pid)
	kill "$pid" 2>/dev/null || true
	# A script that ended too early may have left it held.
	kill -CONT "$pid" 2>/dev/null || true
	wait_for 60 ended "$pid" || kill -9 "$pid"
	rm -f /run/iscsid.pid
}

# iser_record ADDRESS [PORT [SESSIONS]]: what the initiator knows of the target.
iser_record() {
	local -a node
	node=(-m node -T "$ISER_IQN" -p "$(iser_portal "$1" "${2:-}")" -I iser)
	limit 120 iscsiadm "${node[@]}" -o new &&
		limit 120 iscsiadm "${node[@]}" -o update -n node.session.nr_sessions -v "${3:-1}"
}

iser_login() {
	limit 240 iscsiadm -m node -T "$ISER_IQN" -p "$(iser_portal "$1" "${2:-}")" -I iser --login
}

iser_sessions() {
	local dir
	for dir in /sys/class/iscsi_session/session*; do
		if [[ -e $dir/targetname && $(<"$dir/targetname") == "$ISER_IQN" ]]; then
			echo "${dir##*/}"
		fi
	done
}

# A session logs in again: it is not replaced by a new one.
iser_identity() {
	local session
	for session in $(iser_sessions); do
		echo "$session $(<"/sys/class/iscsi_session/$session/state")"
	done
}

iser_sessions_are() { [[ $(iser_sessions | wc -l) == "$1" ]]; }

iser_connect() {
	iser_record "$1" && iser_login "$1" && wait_for 90 iser_place && disks_are_patient "$ISER_STORE"
}

iser_disconnect() {
	iser_sessions_are 0 || limit 240 iscsiadm -m node -T "$ISER_IQN" --logout || return
	wait_for 90 iser_sessions_are 0 || { echo "sessions stay"; return 1; }
	wait_for 90 scsi_disks_are "$ISER_STORE" 0 || { echo "disks stay"; return 1; }
	iser_forget
}

iser_forget() {
	[[ ! -d /etc/iscsi/nodes/$ISER_IQN ]] || limit 120 iscsiadm -m node -T "$ISER_IQN" -o delete
}

iser_place() { first_disk "$ISER_STORE"; }

# The daemon tries for as long as a login may take; where there is a connection, that is for
# as long as a machine that is slow needs.
iser_attempt() {
	local status=0
	iser_record "$1" "$2" && limit 120 iscsiadm -m node -T "$ISER_IQN" -o update \
		-n "node.conn[0].timeo.login_timeout" -v "$(slowly 4)" || return 0
	iser_login "$1" "$2" || status=$?
	iser_forget
	return "$status"
}

iser_crowd() {
	iser_record "$1" "" "$2" && iser_login "$1" || return
	wait_for 90 iser_sessions_are "$2" || { echo "$(iser_sessions | wc -l) sessions"; return 1; }
	wait_for 90 scsi_disks_are "$ISER_STORE" "$2" || { echo "$(scsi_disks "$ISER_STORE" | wc -l) disks"; return 1; }
	disks_are_patient "$ISER_STORE"
}

iser_uncrowd() { iser_disconnect; }
