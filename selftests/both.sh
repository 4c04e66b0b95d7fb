# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A program at each end of a connection.  Source it after lib.sh.

# in_background SECONDS COMMAND...: what is killed then is the command.
in_background() { exec_limited "$@" & }
exec_limited() { exec timeout -k 5 "$(slowly "$1")" "${@:2}"; }

# listens: a server of the test; fi_pingpong's is reached over TCP first.
listens() {
	rdma resource show cm_id | grep -q 'state LISTEN' || ss -Hltn 'sport = :47592' | grep -q .
}

# both SECONDS SERVER... -- CLIENT...: the two end well; the status of the one that does not.
both() {
	local most=$1 server status=0
	local -a one=()
	shift
	while [[ $1 != -- ]]; do
		one+=("$1")
		shift
	done
	shift
	in_background "$most" "${one[@]}" >/tmp/ndk-server.log 2>&1
	server=$!
	wait_for 120 listens || true
	limit "$most" "$@" >/tmp/ndk-client.log 2>&1 || status=$?
	if ((status)); then
		kill "$server" 2>/dev/null || true
		wait "$server" || true
		echo "the client: $status, $(tail -n 3 /tmp/ndk-client.log | tr '\n' ' ')"
		return "$status"
	fi
	wait_pid "$most" "$server" || status=$?
	((status == 0)) || { kill -9 "$server" 2>/dev/null; echo "the server: $status, $(tail -n 3 /tmp/ndk-server.log | tr '\n' ' ')"; return "$status"; }
}
