# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # variables are read by their name
#
# NVMe over Fabrics: nvmet with a null_blk disk, and nvme-cli.

nvme_kind=disk
nvme_recovers=service
nvme_cqs=shared
nvme_retries=no

nvme_serve() { target_up "$2" "$1"; }

nvme_unserve() { target_down; }

nvme_stop() { port_down; }

nvme_start() { port_up "$1"; }

# nvmet's listener went with the device.
nvme_revive() { port_down && port_up "$1"; }

nvme_connect() {
	ADDRESS=$1 host_connect -i 2 >/dev/null || return
	wait_for 90 namespace
}

nvme_disconnect() { host_down; }

nvme_place() { namespace; }

nvme_attempt() {
	limit 120 nvme connect -t rdma -a "$1" -s "$2" -n "$NQN" \
		--hostnqn "$HOSTNQN" --hostid "$HOSTID" --ctrl-loss-tmo 0 -i 1
}

nvme_crowd() {
	local i status=0
	local -a pids=()
	for ((i = 0; i < $2; i++)); do
		ADDRESS=$1 fabrics_connect 2 duplicate_connect &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	((status == 0)) && [[ $(controllers | wc -l) == "$2" ]]
}

nvme_uncrowd() { host_down; }
