# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# The machine of scripts/vm --kernel um and its like: User Mode Linux, a process of this machine.
# Sourced by scripts/vm, whose variables it uses.

# What only a machine has.
refuse_for_um() {
	((!icount && !${#plugins[@]} && !${#net[@]})) ||
		die "User Mode Linux has no --icount, --plugin and --net"
}

# What the command prints gets a descriptor of its own: on standard output and
# standard error the kernel writes, by lines, so that nothing is left in a buffer when
# it dies.  Hence the consoles.  The root is this machine's own, so it is mounted
# read-only; guest/init lays an overlay over it.  What the kernel keeps in files is in
# the folder of the run, too, and goes with it.  A signal that it can catch it takes
# for a reason to clean up with interrupts on, which ends in a panic: it is killed, also
# when what would do that is killed itself.
um_arguments() {
	local terminal=null,fd:3
	local -a checks=(rcupdate.rcu_expedited=1)
	((!interactive)) || terminal=fd:0,fd:3
	# Where there is no KASAN.
	has_checkers "$flavour" || checks+=(slab_debug=FZP slab_max_order=0)
	((!unchecked)) || checks=()
	kill_by=KILL
	# shellcheck disable=SC2054,SC2016 # the commas are channels; the quoted is for the shell that is started
	machine=(bash -c 'exec setpriv --pdeathsig KILL stdbuf -oL "$0" "$@" 3>&1 >&2'
		"$kernel/linux" "mem=${mem}M" "ncpus=$cpus" seccomp=on noreboot earlyprintk
		"uml_dir=$run" umid=um root=host rootfstype=hostfs ro
		"${checks[@]}"
		"con0=$terminal" con1=null,fd:2 con=null console=tty1
		"${kernel_options[@]}" "init=$NDK_TOP/scripts/guest/init")
}

# The processors that this process may run on, one a line.
allowed_processors() {
	local first last
	awk '$1 == "Cpus_allowed_list:" { gsub(",", "\n", $2); print $2 }' /proc/self/status |
		while IFS=- read -r first last; do
			seq "$first" "${last:-$first}"
		done
}

# Each virtual processor, a thread, gets a processor of its own.  On a busy machine two
# of them are else put on one, and then each waits in vain for a lock of the other for
# as long as its time slice is: a hundred times slower.
spread_processors() {
	local thread n=0
	local -a allowed
	mapfile -t allowed < <(allowed_processors)
	# The kernel leaves its number there when all of them are up.
	until [[ -s $run/um/pid || -e $run/over ]]; do
		sleep 0.1
	done
	for thread in "/proc/$(cat "$run/um/pid")/task"/*; do
		taskset -pc "${allowed[n++ % ${#allowed[@]}]}" "${thread##*/}" >/dev/null || true
	done
} 2>/dev/null
