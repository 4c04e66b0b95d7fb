# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by what runs a command inside a guest, after state.sh.

# pipe_name DESCRIPTOR: of a pipe that this shell has open.
pipe_name() { readlink "/proc/$BASHPID/fd/$1"; }

# end_writers PIPE READER: a command has ended whose output the process READER reads from
# that pipe: ends what it left behind with the pipe open, a daemon or a loop in the
# background, so that the reader comes to the pipe's end.  A process that cannot be killed, as
# it waits in the kernel, is left after a minute, and the reader ended; status 1.
end_writers() {
	local list pid told='' end=$((SECONDS + 60 * ${NDK_SLOW:-1})) pattern=${1//[\[\]]/?}
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
		if [[ $told != "${!left[*]}" ]]; then
			told=${!left[*]}
			echo "guest: ends what a command left: $(ps -o args= -p "$(IFS=, && echo "${!left[*]}")" | paste -sd";")" >&2
		fi
		if ((SECONDS >= end)); then
			for pid in "${!left[@]}"; do
				echo "guest: $pid waits in $(stack_of "$pid")" >&2
			done
			kill -s KILL "$2"
			return 1
		fi
		kill -s KILL "${!left[@]}" 2>/dev/null || true
		sleep 0.1
	done
}
