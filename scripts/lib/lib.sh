# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# Shared by the scripts: where things are in the cache, which versions, and how
# long things take here.
# Source it; it changes nothing by itself.

NDK_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
NDK_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/ndk
NDK_BUILD=$NDK_TOP/build

KERNEL_SERIES=7.3
LLVM_MIN=19
LLVM_MAX=29
RUSTC_MIN=1.85
BINDGEN_VERSION=0.73.2
VIRTME_VERSION=1.42
DEBIAN_SUITE=trixie

KERNEL_SRC=$NDK_CACHE/src/linux-$KERNEL_SERIES
BINDGEN_DIR=$NDK_CACHE/tools/bindgen-$BINDGEN_VERSION
VIRTME_DIR=$NDK_CACHE/tools/virtme-ng-$VIRTME_VERSION
# Of packages that the system cannot have beside those that it has.
ASIDE_DIR=$NDK_CACHE/tools/aside
export PATH=$BINDGEN_DIR/bin:$PATH:/usr/sbin:/sbin:$ASIDE_DIR/bin

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

say() {
	echo "== $*" >&2
}

# --- long steps: what they usually take on this machine

# Seconds between the lines that say how far a step is, and how many of a step's
# last times are kept.
STEP_LINE=60
STEPS_KEPT=5

# A cache may be shared by machines: each has its own file of `SECONDS NAME` lines,
# the newest last.
usual_file() {
	echo "$NDK_CACHE/usual-$({ nproc; grep -m1 'model name' /proc/cpuinfo; } 2>/dev/null | sha256sum | cut -c1-12)"
}

# duration SECONDS: in words.
duration() {
	if (($1 < 90)); then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi
}

# usual NAME: what the step took here, the median of its last times, in words.
usual() {
	local file
	local -a times=()
	file=$(usual_file)
	if [[ -f $file ]]; then
		mapfile -t times < <(awk -v name="$1" '$1 ~ /^[0-9]+$/ && substr($0, length($1) + 2) == name { print $1 }' "$file" | sort -n)
	fi
	if ((${#times[@]})); then
		echo "usually $(duration "${times[(${#times[@]} - 1) / 2]}") here"
	else
		echo "first time on this machine: no figure yet"
	fi
}

# took NAME SECONDS: keep it for `usual`.  Only for a run that did the whole work.
took() {
	local file
	file=$(usual_file)
	mkdir -p "$NDK_CACHE"
	(
		flock 8
		{
			cat "$file" 2>/dev/null || true
			echo "$2 $1"
		} | tac | awk -v most="$STEPS_KEPT" '++seen[substr($0, length($1) + 2)] <= most' | tac >"$file.new"
		mv "$file.new" "$file"
	) 8>"$file.lock"
}

# long_step [--part] [--far FUNCTION] NAME TEXT COMMAND [ARG]...: run the command
# with a line of TEXT and the usual time before it, and a line each minute while it
# runs, which ends with what FUNCTION prints.  The time is kept when the command
# succeeds; with --part the command does not do the whole work of NAME: no time is
# told or kept.  The command runs in this shell, as if long_step were not there.
long_step() {
	local part='' far='' name text start=$SECONDS status line_writer shell=$BASHPID
	while [[ $1 == --* ]]; do
		case $1 in
		--part) part=1 && shift ;;
		--far) far=$2 && shift 2 ;;
		*) die "long_step: no option $1" ;;
		esac
	done
	name=$1 text=$2
	shift 2
	if [[ -n $part ]]; then say "$text"; else say "$text ($(usual "$name"))"; fi
	# Without the locks of this shell.
	step_lines "$shell" "$text" "$far" 7>&- 8>&- 9>&- &
	line_writer=$!
	"$@"
	status=$?
	kill "$line_writer" 2>/dev/null || true
	wait "$line_writer" 2>/dev/null || true
	((status)) || [[ -n $part ]] || took "$name" $((SECONDS - start))
	return "$status"
}

# runs PID: the process is there, and more than a zombie.
runs() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat##*) } != [ZX]* ]]
}

# step_lines PID TEXT FUNCTION: a line each minute, while the process is there.
step_lines() {
	local start=$SECONDS lines=0 how_far
	while sleep 1 >&/dev/null && runs "$1"; do
		(((SECONDS - start) / STEP_LINE > lines)) || continue
		lines=$(((SECONDS - start) / STEP_LINE))
		how_far=
		[[ -z $3 ]] || how_far=$("$3") || true
		say "$2: $(duration $((lines * STEP_LINE)))${how_far:+, $how_far}"
	done
}

# --- how slow this machine is

# Rounds of spin_rounds() in five seconds, of each processor of the machine that the limits
# are chosen for.  An idle one does more.
ROUNDS_USUAL=2500
SLOWEST=20

spin_rounds() {
	local n=0 i
	SECONDS=0
	until ((SECONDS >= 5)); do
		for ((i = 0; i < 1000; i++)); do :; done
		n=$((n + 1))
	done
	echo "$n"
}

# slow_factor: the factor of all limits that end a hang: 1, or by how much this machine is
# slower at this moment, with all that it does beside.
slow_factor() {
	local n rounds=0
	for ((n = 0; n < $(nproc); n++)); do
		spin_rounds &
	done | {
		while read -r n; do rounds=$((rounds + n)); done
		rounds=$((rounds / $(nproc)))
		((rounds * SLOWEST > ROUNDS_USUAL)) || rounds=$((ROUNDS_USUAL / SLOWEST))
		echo $(((ROUNDS_USUAL + rounds - 1) / rounds))
	}
}

# measure_slowness: sets NDK_SLOW for this shell and what it runs, unless it is set.
measure_slowness() {
	if [[ -z ${NDK_SLOW:-} ]]; then
		NDK_SLOW=$(slow_factor)
		say "limits: NDK_SLOW=$NDK_SLOW times those of an idle machine (measured in 5 s)"
	fi
	export NDK_SLOW
}

# slowly SECONDS: that limit on this machine.
slowly() { echo $(($1 * ${NDK_SLOW:-1})); }

# seconds_left: to NDK_DEADLINE, the end of the whole run in seconds since 1970; a year without.
seconds_left() { echo $((${NDK_DEADLINE:-EPOCHSECONDS + 31536000} - EPOCHSECONDS)); }

# --- tools

# The newest installed clang/lld/llvm that is new enough and complete, as make's
# LLVM=-N.
llvm_suffix() {
	local n
	for ((n = LLVM_MAX; n >= LLVM_MIN; n--)); do
		if has_all "clang-$n" "ld.lld-$n" "llvm-ar-$n" "llvm-nm-$n" "llvm-objcopy-$n" "llvm-strip-$n"; then
			echo "-$n"
			return
		fi
	done
	return 1
}

# has_all COMMAND...: whether all of them can be run.
has_all() {
	local name
	for name; do
		command -v "$name" >/dev/null || return 1
	done
}

# Whether this machine is Debian 13, whose compilers built its kernel.
on_debian_13() {
	# shellcheck disable=SC1091
	[[ $(. /etc/os-release && echo "${VERSION_CODENAME:-}") == "$DEBIAN_SUITE" ]]
}

# kernel_run TREE COMMAND...: run a build where the compilers of that tree are.
kernel_run() {
	local tree=$1
	shift
	if [[ -f $tree/.debian-root ]]; then
		"$NDK_TOP/scripts/lib/debian-run" "$@"
	else
		"$@"
	fi
}

# Whether as_root works: for root, and where user name spaces may be used.
can_be_root() {
	((EUID == 0)) || as_root true 2>/dev/null
}

CANNOT_BE_ROOT="this user cannot make a Debian root: run this as root, or type
  sudo apt-get install uidmap && sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un) && sudo sysctl kernel.unprivileged_userns_clone=1"

# as_root COMMAND...: in a mount name space of its own, as root or as somebody who
# is root there, with a range of users of his own.
as_root() {
	if ((EUID == 0)); then
		unshare --mount "$@"
	else
		unshare --user --map-auto --map-root-user --mount "$@"
	fi
}

# remove_root DIR: with what belongs to users that only its maker's name space knows.
remove_root() {
	rm -rf "$1" 2>/dev/null || as_root rm -rf "$1"
}

rustc_version() {
	rustc --version | cut -d' ' -f2
}

# The standard library's sources of exactly the installed rustc.
rust_lib_src() {
	local version rustup
	rustup=$(rustc --print sysroot)/lib/rustlib/src/rust/library
	version=$(rustc_version)
	if [[ -f $rustup/core/src/lib.rs ]]; then
		echo "$rustup"
	else
		echo "$NDK_CACHE/tools/rust-src-$version/usr/src/rustc-$version/library"
	fi
}

# What make has to be told about a flavour that is of another architecture, one
# argument a line.  User Mode Linux loads no module that goes through a table of
# offsets, which is how rustc reaches other objects unless told otherwise.
kernel_make_arguments() {
	case $1 in
	um*) printf '%s\n' ARCH=um SUBARCH=x86 'RUSTFLAGS_MODULE=-Crelocation-model=static -Ccode-model=large' ;;&
	# The stub's return from a signal reads its frame without a frame pointer; a read that may
	# fault goes on with the registers of the fault, which the checks have changed.
	um-debug | um-blktests | um-kcsan) printf '%s\n' 'CFLAGS_stub.o=-fno-PIC -fno-pic -fno-stack-protector -fomit-frame-pointer' \
		KASAN_SANITIZE_maccess.o=n KCSAN_SANITIZE_maccess.o=n KCFLAGS=-fbuiltin ;;
	arm64) echo ARCH=arm64 ;;
	esac
}

# --- the test kernels

# kernel_fragments FLAVOUR: prints the fragments of scripts/kernel/ that are its configuration.
kernel_fragments() {
	local -a names
	case $1 in
	lean) names=(base net rdma clients peers blktests lean) ;;
	debug) names=(base net rdma clients peers blktests checkers debug) ;;
	um) names=(um) ;;
	um-full) names=(um native clients peers blktests) ;;
	um-debug) names=(um native clients peers checkers um-debug) ;;
	um-blktests) names=(um native clients peers blktests checkers um-debug) ;;
	um-kcsan) names=(um native clients um-kcsan) ;;
	arm64) names=(arm64) ;;
	*) return 1 ;;
	esac
	printf "$NDK_TOP/scripts/kernel/%s.config\n" "${names[@]}"
}

# has_checkers FLAVOUR: KASAN, lockdep and kmemleak.
has_checkers() { [[ $1 == @(debug|um-debug|um-blktests) ]]; }

# Whether a flavour is User Mode Linux.
is_um() { [[ $1 == um* ]]; }

# The patches that this project's own kernels have, one a line: docs/found.
kernel_patches() {
	find "$NDK_TOP/docs/found" -name '*.patch' 2>/dev/null | sort
}

# source_is_patched: the source of the project's kernels has just these.
source_is_patched() {
	local -a patches
	mapfile -t patches < <(kernel_patches)
	cat /dev/null "${patches[@]}" | cmp -s - <(cat /dev/null "$KERNEL_SRC.patches"/*.patch 2>/dev/null)
}

# hold_source FLAVOUR: until this shell ends the source of the project's kernels keeps its patches,
# which kernel-source changes under the same lock.  A flavour with another source needs none.
hold_source() {
	[[ -z ${KDIR:-} && $1 != @(stock|kdir) ]] || return 0
	exec 7>>"$KERNEL_SRC.lock"
	until flock -s 7 && source_is_patched; do
		flock -u 7
		"$NDK_TOP/scripts/lib/kernel-source" >/dev/null
	done
}

client_file() { echo "$NDK_TOP/selftests/clients/$1.sh"; }

# all_clients: the storage clients that can be run, nvme first.
all_clients() { "$NDK_TOP/scripts/lib/scenarios.py" clients; }

# kernel_dir FLAVOUR: the folder of a test kernel, named by its configuration, patches and compilers.
kernel_dir() {
	local -a files
	mapfile -t files < <(kernel_fragments "$1" && kernel_patches)
	echo "$NDK_CACHE/kernel/$1-$({
		head -5 "$KERNEL_SRC/Makefile"
		cat "${files[@]}"
		rustc -vV
		"clang$(llvm_suffix)" --version | head -1
		echo "bindgen $BINDGEN_VERSION"
	} | sha256sum | cut -c1-12)"
}

# A built tree and its configuration, as a short hash: modules are of one.
kernel_stamp() {
	{ echo "$1" && cat "$1/include/config/auto.conf"; } | sha256sum | cut -c1-12
}

# stamp_folder KERNEL FOLDER: its modules are of that kernel.  Readers see the old stamp or the new one.
stamp_folder() {
	kernel_stamp "$1" >"$2/.kernel.new"
	mv "$2/.kernel.new" "$2/.kernel"
}

# is_stamped KERNEL FOLDER
is_stamped() {
	[[ -f $2/.kernel && $(<"$2/.kernel") == "$(kernel_stamp "$1")" ]]
}

# The sources of a built tree; one that was built in place has no link to them.
kernel_source() {
	if [[ -d $1/source ]]; then echo "$1/source"; else echo "$1"; fi
}

# kunit_suites FOLDER [rs|c]: the KUnit suites of its Rust files, its C files or both, one name a line.
kunit_suites() {
	[[ ${2:-} == c ]] ||
		grep -rhoE --include='*.rs' 'kunit_tests\([a-z0-9_]+\)' "$1" | sed 's/.*(\(.*\))/\1/' || true
	[[ ${2:-} == rs ]] || find "$1" -name '*.c' -exec awk '
		/struct kunit_suite [a-z_]+ = \{/ { inside = 1 }
		inside && match($0, /\.name = "[^"]+"/) { print substr($0, RSTART + 9, RLENGTH - 10) }
		/^\}/ { inside = 0 }' {} +
}

# why_guest_failed STATUS OUTPUT: what scripts/vm ended with STATUS for, whose output is in
# the file OUTPUT.
why_guest_failed() {
	local report
	report=$(sed -n 's/^# report [^:]*: //p' "$2" | head -1)
	case $1 in
	124) echo "was killed at the end of its time" ;;
	125) echo "ended before its command did" ;;
	126) echo "left a report in the kernel log" ;;
	*) echo "ended with status $1" ;;
	esac | tr -d '\n'
	echo "${report:+: $report}"
}
