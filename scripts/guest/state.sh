# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by what runs a command inside a guest: at the end of a time limit the kernel's log
# gets what each process waits for.

# stack_of PID: the functions that it waits in, the innermost first; kernels with the checkers
# know them.
stack_of() {
	local function text=
	while read -r _ function _; do
		function=${function%%+*}
		# Where each that waits is.
		[[ $function == @(__switch_to|__schedule|schedule) ]] || text+="${text:+ < }$function"
	done <"/proc/$1/stack" || true
	echo "${text:-unknown}"
} 2>/dev/null

# tell_state: a line `guest: state: PID STATE ARGUMENTS: STACK` for each process that has no
# child, for each that cannot be interrupted, threads of the kernel too, and for those of KUnit.
# The end of a log is what is shown: there are those that cannot be interrupted.
tell_state() {
	local folder pid name state parent rest text
	local -A states=() has_child=()
	local -a arguments waits=() sleeps=()
	for folder in /proc/[0-9]*; do
		read -r rest 2>/dev/null <"$folder/stat" || continue
		pid=${folder#/proc/}
		read -r state parent _ <<<"${rest##*) }"
		states[$pid]=$state has_child[$parent]=1
	done
	for pid in "${!states[@]}"; do
		state=${states[$pid]} name='' arguments=()
		[[ $pid != "$BASHPID" && $state != Z ]] || continue
		{ read -r name <"/proc/$pid/comm" && mapfile -d '' -t arguments <"/proc/$pid/cmdline"; } 2>/dev/null || continue
		[[ $state == D || $name == kunit* ]] || ((${#arguments[@]} && !${has_child[$pid]:-0})) || continue
		text=${arguments[*]:-[$name]}
		text="guest: state: $pid $state ${text:0:100}: $(stack_of "$pid")"
		if [[ $state == D ]]; then waits+=("${text:0:700}"); else sleeps+=("${text:0:700}"); fi
	done
	for text in "guest: state: of all that waits" "${sleeps[@]}" "${waits[@]}"; do
		echo "<4>${text//$'\n'/ }" >/dev/kmsg
	done
}

# So long it may take, times NDK_SLOW.
# shellcheck disable=SC2034
STATE_SECONDS=30

# tell_state_after SECONDS [FILE]: in the background; FILE is there when all is told.  The caller
# ends it with no_state.  It waits without another process, which would be left then, and not
# at all where the clock counts instructions, for its own would be among them.
tell_state_after() {
	local never
	TELLER=
	[[ ${NDK_ICOUNT:-0} != 1 ]] || return 0
	exec {never}<> <(:)
	{
		read -rt "$1" -u "$never" || tell_state
		[[ -z ${2:-} ]] || : >"$2"
	} </dev/null &>/dev/null &
	TELLER=$!
	disown "$TELLER"
	exec {never}>&-
}

no_state() { [[ -z $TELLER ]] || kill "$TELLER" 2>/dev/null || true; }
