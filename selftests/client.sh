# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2153
#
# The kernel's storage clients behind one set of functions, so that the demo, the
# scenarios and the soak test treat them alike. Source it after lib.sh, and name the
# client by use_client().
#
# clients/NAME.sh defines, each with the prefix `NAME_`; what fails prints why:
#
#   kind                   a variable: `disk`, or `folder` for a file system
#   recovers               a variable: `yes` where I/O goes on when the device is there
#                          again, `service` where it does so only when the service is,
#                          `no` where it ends with errors, as the client's rules say
#   serve ADDRESS MIB      load what is needed, make a store in memory, export it there
#   unserve                take it all down, the modules too; may be called twice
#   stop, start ADDRESS    the service goes and comes back; the store stays
#   revive ADDRESS         what the service needs to listen on a device that was gone
#   unplug                 a variable, may be missing: `stopped` where the service has to be
#                          stopped while the device is gone, as the kernel's does not survive
#                          that.  Then there is
#   at_rest                the service that was stopped has let go of the device
#   connect ADDRESS        one client, until its disk or folder is there
#   disconnect             may be called twice, and when the device is gone
#   remount                for a folder: the same again, with nothing cached
#   place                  print the disk, or the folder
#   attempt ADDRESS PORT   connect where nobody serves: has to fail by itself, and has a limit
#   crowd ADDRESS N        N connections at once, verified to be there
#   uncrowd                all of them gone
#   fails_at               a variable, may be missing: the faults of the device that end I/O
#                          with an error; the client works again after a new connect
#   retries                a variable, may be missing: `no` where a connect that fails is not
#                          tried again by the client itself
#   own_error              may be missing: the log shows a known fault of the client, by which
#                          I/O may end with an error though it works again by itself
#   invalidates, cqs       variables, may be missing: `no` for a client that has nothing
#                          invalidated; `shared` where completion queues are the core's,
#                          which keeps them
#   identity               may be missing: print what has to be the same after an outage
#                          that the client recovers from
#
# scripts/lib/scenarios.py has the packages of its programs.

CLIENTS_DIR=$(dirname "${BASH_SOURCE[0]}")/clients

# use_client NAME: from now on `client VERB` is of that one.
use_client() {
	CLIENT=$1
	# shellcheck disable=SC1090
	. "$CLIENTS_DIR/$CLIENT.sh"
}

client() {
	local verb=$1
	shift
	"${CLIENT}_$verb" "$@"
}

client_is() {
	local name=${CLIENT}_$1
	[[ ${!name:-} == "$2" ]]
}

# client_up ADDRESS MIB: server and client.  The caller defers client_down.
client_up() {
	client serve "$1" "$2" || { echo "the server does not start"; return 1; }
	client connect "$1"
}

client_down() {
	client disconnect || true
	client unserve
}

# client_data: the file that fio writes to.
client_data() {
	local place
	place=$(client place) || return
	if client_is kind folder; then
		echo "$place/ndk-fio"
	else
		echo "$place"
	fi
}

# client_verify NAME RW BLOCKSIZE SIZE [OPTION]...
client_verify() {
	local data name=$1
	shift
	data=$(client_data) || return
	fio_verify "$name" "$data" "$@"
}

# client_tree TREE: copied there, and compared when nothing of it is cached.
client_tree() {
	local place status=0
	place=$(client place) || return
	if client_is kind disk; then
		same_tree "$1" "$place"
		return
	fi
	cp -r --preserve=mode,timestamps,links "$1" "$place/ndk-tree" || return
	sync -f "$place" || return
	client remount || return
	diff -r --no-dereference "$1" "$place/ndk-tree" || status=$?
	rm -rf "$place/ndk-tree"
	return "$status"
}

# client_load COMMAND: I/O in the background until fio_ends; with fio_background it is under way,
# with fio_load it may not be.
client_load() {
	local data
	data=$(client_data) || return
	if client_is kind folder; then
		limit 240 fio --name=lay --filename="$data" --rw=write --bs=1m --size=16m --output=/dev/null >/dev/null || return
	fi
	"$1" "$data"
}

# --- scenarios, of which every client has the same

# is_short: what only one client has is left out, as `make test` wants it.
is_short() { [[ -n ${NDK_SHORT:-} ]]; }

# mark_log: what own_error looks at is what comes from now on.
mark_log() { echo "ndk-test: $CLIENT" >/dev/kmsg; }

# log_since_mark: the kernel's log since then.
log_since_mark() { dmesg | awk '/ndk-test: / { text = "" } { text = text $0 "\n" } END { printf "%s", text }'; }

# own_error: the client has ended I/O with an error by a fault of its own, which its file
# knows, and which the kernel's log shows.
own_error() { declare -F "${CLIENT}_own_error" >/dev/null && client own_error; }

under_load() {
	mark_log
	# Again, for modules that are there by now.
	trace_connections
	client_load fio_background || { echo "no load"; return 1; }
}

# load_ends RECOVERS...: the load ends when it is told to; with success, if this client
# recovers so.
load_ends() {
	local status=0 recovers
	fio_ends 300 || status=$?
	if ((status == 124 || status == 137)); then
		echo "the load hangs"
		return 1
	fi
	for recovers; do
		if client_is recovers "$recovers" && ((status)) && ! own_error; then
			log_connections
			echo "the load ended with status $status, $(grep -m 1 -i error "$FIO_STOP.said")"
			return 1
		fi
	done
}

scenario_data() {
	check "$CLIENT: verify 4 KiB random" client_verify r4k randwrite 4k 1m
	is_short || check "$CLIENT: verify 64 KiB sequential" client_verify s64k write 64k 4m
	check "$CLIENT: verify 1 MiB sequential" client_verify s1m write 1m 8m
	check "$CLIENT: verify mixed" client_verify mixed randrw 4k 1m --bsrange=4k-64k --blockalign=4k
	[[ -d /tmp/ndk-tree ]] || make_tree /tmp/ndk-tree
	check "$CLIENT: tree, copy, compare" client_tree /tmp/ndk-tree
}

client_identity() {
	! declare -F "${CLIENT}_identity" >/dev/null || client identity
}

# still_is IDENTITY
still_is() {
	local now
	now=$(client_identity)
	[[ $now == "$1" ]] || { echo "$1 has become $now"; return 1; }
}

# is_again IDENTITY: soon, as the load may have ended before all of it was there again.
is_again() { wait_for 90 still_is "$1" || still_is "$1"; }

# The server goes while the client is busy, and comes back.
scenario_restart() {
	local identity
	identity=$(client_identity)
	under_load || return
	client stop || { echo "the service does not stop"; return 1; }
	sleep 2
	client start "$1" || { echo "the service does not start"; return 1; }
	load_ends yes service || return
	client_is recovers no || is_again "$identity" || return
	client_verify again randwrite 4k 512k
}

# scenario_unplug NETDEV ADDRESS COMMAND...: the device goes under load; when it is
# there again the client works again, by itself or after a new connect.
scenario_unplug() {
	local netdev=$1 address=$2 identity
	shift 2
	identity=$(client_identity)
	under_load || return
	if client_is unplug stopped; then
		client stop || { echo "the service does not stop"; return 1; }
		wait_for 90 client at_rest || { echo "the service does not let go"; return 1; }
	fi
	removal 300 "$@" || { echo "$* failed"; return 1; }
	add_again "$netdev" "$address" || { echo "the device does not come back"; return 1; }
	if client_is unplug stopped; then
		client start "$address"
	else
		client revive "$address"
	fi || { echo "the service does not come back"; return 1; }
	load_ends yes || return
	if client_is recovers yes; then
		is_again "$identity" || return
	else
		client disconnect || { echo "no disconnect"; return 1; }
		client connect "$address" || { echo "no new connect"; return 1; }
	fi
	client_verify after randwrite 4k 512k
}

# trace_connections: what rdma_cm does from now on is kept, and how NFS connects, for who asks
# why a device cannot be removed, or a load has ended.
trace_connections() {
	local event
	trace_mount || return 0
	for event in rdma_cma rpcrdma/xprtrdma_connect sunrpc/rpc_call_rpcerror; do
		[[ ! -d $TRACING/events/$event ]] || put 1 "$TRACING/events/$event/enable"
	done
}

# log_connections: into the kernel log, which is kept; without those who never came as far as a
# device.
log_connections() {
	grep -vE '^#|ADDR_ERROR|src=0\.0\.0\.0' "$TRACING/trace" 2>/dev/null | tail -n 150 | while IFS= read -r line; do
		echo "rdma_cm: $line" >/dev/kmsg
	done
}

# removal SECONDS COMMAND...: it ends, and that time, times NDK_SLOW, is the limit. It is left
# alone if it does not: a task that waits for a device in the kernel cannot be killed.
removal() {
	local status=0 most=$1
	shift
	# Its output is not check()'s pipe, which ends only with the last who has it open.
	"$@" >/tmp/removal.out 2>&1 &
	wait_pid "$most" $! || status=$?
	if ((status != 124)); then
		cat /tmp/removal.out
		return "$status"
	fi
	log_connections
	echo "it hangs: it still waits after $(slowly "$most") s"
	return 1
}

# add_again NETDEV ADDRESS: whatever of it is gone.
add_again() {
	[[ -e /sys/module/$MODULE ]] || load_module || return
	[[ -e /sys/class/net/$1 ]] || make_dummy "$1" "$2" || return
	has_link "$DEVICE" || add_link "$DEVICE" "$1" || return
	wait_for 90 link_is "$DEVICE" ACTIVE
}

# --- what a client does when the device fails at a chosen request; docs/faults.md has what
# each of them does

# works_after NAME STATUS: I/O under a fault ended with that status, as the client's rules
# say. It works again, by itself or after a new connect.
works_after() {
	local before=$2
	fault_off "$1" || return
	if [[ " $(fault_expected) " == *" $1 "* ]]; then
		((before)) || { echo "I/O ended without an error"; return 1; }
		client disconnect || { echo "no disconnect"; return 1; }
		client connect "$ADDRESS" || { echo "no new connect"; return 1; }
	elif ((before)) && ! own_error; then
		echo "I/O ended with status $before"
		return 1
	fi
	# What hits one early request lets no I/O through that did not come after it.
	case $1 in
	drop_connection | complete_with | refuse_access | port_down | refuse_invalidation)
		! is_short || ((before)) || return 0
		;;
	esac
	FIO_LIMIT=240 client_verify after randwrite 4k 128k || { echo "no I/O afterwards"; return 1; }
}

# The faults that end I/O of this client with an error.
fault_expected() {
	local name=${CLIENT}_fails_at
	echo "${!name:-}"
}

# scenario_fault NAME SETTING...
scenario_fault() {
	local name=$1 status=0
	mark_log
	fault_on "$@" || return
	FIO_LIMIT=300 client_verify fault randwrite 16k 512k || status=$?
	works_after "$name" "$status"
}

# A byte of what the client writes or reads is wrong, which fio finds.
scenario_corrupt() {
	local said
	fault_on corrupt opcode=read,write nth=9 || return
	said=$(FIO_LIMIT=300 client_verify fault randwrite 64k 2m --verify_fatal=1 2>&1) || true
	grep -q 'verify' <<<"$said" || { echo "the wrong byte was not found: $said"; return 1; }
	fault_off corrupt || return
	FIO_LIMIT=240 client_verify after randwrite 4k 128k
}

# scenario_connect_fault NAME SETTING...: the connect fails, unless the client tries again
# by itself; the next one works.
scenario_connect_fault() {
	local name=$1 status=0
	client disconnect || return
	fault_on "$@" || return
	client connect "$ADDRESS" || status=$?
	fault_off "$name" || return
	if ((status)); then
		client disconnect || { echo "no disconnect"; return 1; }
		client connect "$ADDRESS" || { echo "no new connect"; return 1; }
	elif client_is retries no; then
		echo "the connect did not fail"
		return 1
	fi
	FIO_LIMIT=240 client_verify after randwrite 4k 128k
}

# scenario_late_connect MS: it takes at least so long, and does not fail.
scenario_late_connect() {
	local begin ms
	client disconnect || return
	fault_on delay_connect "usec=$(($1 * 1000))" || return
	begin=$(date +%s%3N)
	client connect "$ADDRESS" || { echo "the connect failed"; return 1; }
	ms=$(($(date +%s%3N) - begin))
	fault_off delay_connect || return
	((ms >= $1)) || { echo "connected after $ms ms"; return 1; }
	FIO_LIMIT=240 client_verify after randwrite 4k 128k
}

# The connection is lost, and for three seconds nobody but the queue pairs is told.
scenario_silent_end() {
	local status=0
	mark_log
	fault_on drop_event event=disconnect times=2 usec=3000000 || return
	fault_on drop_connection nth=20 || return
	FIO_LIMIT=300 client_verify fault randwrite 16k 512k || status=$?
	wait_for 60 fault_has_hit drop_event || true
	fault_off drop_event || return
	works_after drop_connection "$status"
}

client_faults() {
	defer faults_off
	fault_hold delay_connect
	check "$CLIENT: drop_connection" scenario_fault drop_connection nth=20
	check "$CLIENT: drop_connection, and the event is late" scenario_silent_end
	check "$CLIENT: complete_with" scenario_fault complete_with nth=20 status=rem_op_err
	check "$CLIENT: delay_completion" scenario_fault delay_completion interval=7 times=20 usec=5000
	check "$CLIENT: delay_completion, after the answer" \
		scenario_fault delay_completion side=requester opcode=send interval=7 times=20 usec=5000
	check "$CLIENT: delay_message" scenario_fault delay_message interval=7 times=20 usec=5000
	check "$CLIENT: rnr" scenario_fault rnr interval=7 times=5 usec=20000
	check "$CLIENT: refuse_access" scenario_fault refuse_access nth=5
	check "$CLIENT: port_down" scenario_fault port_down nth=20 usec=300000
	check "$CLIENT: corrupt" scenario_corrupt
	client_is invalidates no || check "$CLIENT: refuse_invalidation" scenario_fault refuse_invalidation nth=3
	check "$CLIENT: reject_connect" scenario_connect_fault reject_connect
	fault_hold reject_connect
	check "$CLIENT: delay_connect" scenario_late_connect 300
	check "$CLIENT: a request is dropped" scenario_connect_fault drop_event event=request usec=500000
	check "$CLIENT: a reply is dropped" scenario_connect_fault drop_event event=reply usec=500000
	check "$CLIENT: no memory for a queue pair" scenario_connect_fault no_memory object=qp
	client_is cqs shared || check "$CLIENT: no memory for a completion queue" scenario_connect_fault no_memory object=cq
	check "$CLIENT: no memory for a region" scenario_connect_fault no_memory object=mr
	faults_off
}

scenario_refused() {
	check "$CLIENT: nobody listens" refused client attempt "$1" 4999
	check "$CLIENT: an address without a device" refused client attempt 192.0.2.77 "${2:-4999}"
}

# client_scenarios: what each client has to survive. The device is up. What a client has
# of its own is looked at by own_scenarios, if there is one: it finds the client connected,
# and leaves it so.
# check() calls in a subshell, whose variables and deferred calls are lost.
client_scenarios() {
	defer client_down
	modprobe rdma_cm
	trace_connections
	check "$CLIENT: connect" client_up "$ADDRESS" 64
	scenario_data
	! has_faults || client_faults
	check "$CLIENT: the server goes and comes back" scenario_restart "$ADDRESS"
	check "$CLIENT: rdma link delete under load" scenario_unplug "$NETDEV" "$ADDRESS" rdma link delete "$DEVICE"
	check "$CLIENT: modprobe -r under load" scenario_unplug "$NETDEV" "$ADDRESS" modprobe -r "$MODULE"
	scenario_refused "$ADDRESS"
	is_short || ! declare -F own_scenarios >/dev/null || own_scenarios
	check "$CLIENT: disconnect" client disconnect
	check "$CLIENT: many at once" client crowd "$ADDRESS" "$(is_short && echo 4 || echo 8)"
	check "$CLIENT: those gone" client uncrowd
	check "$CLIENT: server down" client unserve
	check "$CLIENT: no resources left" wait_for 90 no_resources
	scenario_on_dummy
}

# On a device that is taken away with its network device.
scenario_on_dummy() {
	check "$CLIENT: delete the device" del_link "$DEVICE"
	make_dummy ndkdum 10.80.0.1
	add_link "$DEVICE" ndkdum
	check "$CLIENT: connect over a dummy" client_up 10.80.0.1 64
	check "$CLIENT: ip link del under load" scenario_unplug ndkdum 10.80.0.1 ip link del ndkdum
	check "$CLIENT: disconnect from that" client disconnect
	check "$CLIENT: server down again" client unserve
	check "$CLIENT: no resources left again" wait_for 90 no_resources
	del_link "$DEVICE"
	drop_dummy ndkdum
}
