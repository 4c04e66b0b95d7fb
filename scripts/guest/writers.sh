# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by what runs a command inside a guest.

# pipe_name DESCRIPTOR: of a pipe that this shell has open.
pipe_name() { readlink "/proc/$BASHPID/fd/$1"; }

# end_writers PIPE READER: a command has ended whose output the process READER reads from
# that pipe: ends what it left behind with the pipe open, a daemon or a loop in the
# background, so that the reader comes to the pipe's end.
end_writers() {
	local list pid pattern=${1//[\[\]]/?}
	local -A left
	while :; do
		list=$(find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/fd/*' -lname "$pattern" -printf '%h\n' 2>/dev/null) || true
		left=()
		for pid in $list; do
			pid=${pid#/proc/}
			left[${pid%/fd}]=1
		done
		unset "left[$2]"
		((${#left[@]})) || return 0
		echo "guest: ends what a command left: $(ps -o args= -p "$(IFS=, && echo "${!left[*]}")" | paste -sd";")" >&2
		kill -s KILL "${!left[@]}" 2>/dev/null || true
		sleep 0.1
	done
}
