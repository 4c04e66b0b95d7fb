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
#   connect ADDRESS        one client, until its disk or folder is there
#   disconnect             may be called twice, and when the device is gone
#   remount                for a folder: the same again, with nothing cached
#   place                  print the disk, or the folder
#   attempt ADDRESS PORT   connect where nobody serves: has to fail, in bounded time
#   crowd ADDRESS N        N connections at once, verified to be there
#   uncrowd                all of them gone
#   identity               may be missing: print what has to be the same after an outage
#                          that the client recovers from
#
# A line `# packages: COMMAND-OR-FILE PACKAGE` in it names what its programs are in
# (scripts/setup), `# kernel:` the groups of the kernel that it needs
# (scripts/kernel/groups), and `# also: stock` that Debian's kernel has it.

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
	[[ ${!name} == "$2" ]]
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

# client_load SECONDS: I/O in the background, its pid in FIO_PID.
client_load() {
	local data
	data=$(client_data) || return
	if client_is kind folder; then
		limit 60 fio --name=lay --filename="$data" --rw=write --bs=1m --size=16m --output=/dev/null >/dev/null || return
	fi
	fio_background "$data" "$1"
}

# --- scenarios, of which every client has the same

# under_load: six seconds of it, the first two of which have passed.
under_load() {
	client_load 6 || { echo "no load"; return 1; }
	sleep 2
	! ended "$FIO_PID" || { echo "the load ends by itself"; return 1; }
}

# ended_in SECONDS RECOVERS...: the load has ended; with success, if this client recovers
# so.
ended_in() {
	local status=0 recovers
	wait_pid "$1" "$FIO_PID" || status=$?
	if ((status == 124 || status == 137)); then
		echo "the load still runs after $1 s"
		return 1
	fi
	shift
	for recovers; do
		if client_is recovers "$recovers" && ((status)); then
			echo "the load ended with status $status"
			return 1
		fi
	done
}

scenario_data() {
	check "$CLIENT: verify 4 KiB random" client_verify r4k randwrite 4k 1m
	check "$CLIENT: verify 64 KiB sequential" client_verify s64k write 64k 4m
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

# The server goes while the client is busy, and comes back.
scenario_restart() {
	local identity
	identity=$(client_identity)
	under_load || return
	client stop || { echo "the service does not stop"; return 1; }
	sleep 2
	client start "$1" || { echo "the service does not start"; return 1; }
	ended_in 120 yes service || return
	client_is recovers no || still_is "$identity" || return
	client_verify again randwrite 4k 512k
}

# scenario_unplug NETDEV ADDRESS COMMAND...: the device goes under load; when it is
# there again the client works again, by itself or after a new connect.
scenario_unplug() {
	local netdev=$1 address=$2 identity
	shift 2
	identity=$(client_identity)
	under_load || return
	limit 60 "$@" || { echo "$* failed"; return 1; }
	add_again "$netdev" "$address" || { echo "the device does not come back"; return 1; }
	client revive "$address" || { echo "the service does not come back"; return 1; }
	ended_in 120 yes || return
	if client_is recovers yes; then
		still_is "$identity" || return
	else
		client disconnect || { echo "no disconnect"; return 1; }
		client connect "$address" || { echo "no new connect"; return 1; }
	fi
	client_verify after randwrite 4k 512k
}

# add_again NETDEV ADDRESS: whatever of it is gone.
add_again() {
	[[ -e /sys/module/$MODULE ]] || modprobe "$MODULE" || return
	[[ -e /sys/class/net/$1 ]] || make_dummy "$1" "$2" || return
	has_link "$DEVICE" || add_link "$DEVICE" "$1" || return
	wait_for 5 link_is "$DEVICE" ACTIVE
}

# refused ADDRESS PORT: the attempt fails of its own accord, and soon.
refused() {
	local status=0 start=$SECONDS
	client attempt "$@" || status=$?
	case $status in
	0) echo "was accepted" && return 1 ;;
	124 | 137) echo "no answer" && return 1 ;;
	esac
	((SECONDS - start <= 30)) || { echo "refused after $((SECONDS - start)) s"; return 1; }
}

scenario_refused() {
	check "$CLIENT: nobody listens" refused "$1" 4999
	check "$CLIENT: an address without a device" refused 192.0.2.77 "${2:-4999}"
}

# client_scenarios: what each client has to survive. The device is up. What a client has
# of its own is looked at by own_scenarios, if there is one: it finds the client connected,
# and leaves it so.
# check() calls in a subshell, whose variables and deferred calls are lost.
client_scenarios() {
	defer client_down
	check "$CLIENT: connect" client_up "$ADDRESS" 64
	scenario_data
	check "$CLIENT: the server goes and comes back" scenario_restart "$ADDRESS"
	check "$CLIENT: rdma link delete under load" scenario_unplug "$NETDEV" "$ADDRESS" rdma link delete "$DEVICE"
	check "$CLIENT: modprobe -r under load" scenario_unplug "$NETDEV" "$ADDRESS" modprobe -r "$MODULE"
	scenario_refused "$ADDRESS"
	! declare -F own_scenarios >/dev/null || own_scenarios
	check "$CLIENT: disconnect" client disconnect
	check "$CLIENT: many at once" client crowd "$ADDRESS" 8
	check "$CLIENT: those gone" client uncrowd
	check "$CLIENT: server down" client unserve
	check "$CLIENT: no resources left" wait_for 30 no_resources
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
	check "$CLIENT: no resources left again" wait_for 30 no_resources
	del_link "$DEVICE"
	drop_dummy ndkdum
}
