# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# Shared by the scripts: where things are in the cache, and which versions.
# Source it; it changes nothing by itself.

NDK_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
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
export PATH=$BINDGEN_DIR/bin:$PATH:/usr/sbin:/sbin

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

say() {
	echo "== $*" >&2
}

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

kernel_fragments() {
	printf "$NDK_TOP/scripts/kernel/%s.config\n" base net rdma "$1"
}

# All that a built kernel depends on, as a short hash: its directory's name.
kernel_key() {
	local -a fragments
	mapfile -t fragments < <(kernel_fragments "$1")
	{
		head -5 "$KERNEL_SRC/Makefile"
		cat "${fragments[@]}"
		rustc -vV
		"clang$(llvm_suffix)" --version | head -1
		echo "bindgen $BINDGEN_VERSION"
	} | sha256sum | cut -c1-12
}

# The sources of a built tree; one that was built in place has no link to them.
kernel_source() {
	if [[ -d $1/source ]]; then echo "$1/source"; else echo "$1"; fi
}

kernel_dir() {
	echo "$NDK_CACHE/kernel/$1-$(kernel_key "$1")"
}
