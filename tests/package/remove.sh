#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the root, after the guest: the package is purged and has left nothing.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

purge() {
	apt-get -y purge ndk-dkms
}

# What came with the package goes as well, then: DKMS and the compilers.
autoremove() {
	SUDO_FORCE_REMOVE=yes apt-get -y purge --autoremove dkms
}

nothing_of_ndk() {
	local found
	found=$(list_files | grep -iE '/ndk([-_@.]|$)|/ndk/' || true)
	[[ -z $found ]] || { echo "$found"; return 1; }
}

# But for the key that DKMS signed with, which it keeps.
all_is_gone() {
	local found
	found=$(list_files | comm -13 /share/files.before - |
		grep -vxE '/var/lib/dkms(/mok\.(key|pub))?' || true)
	[[ -z $found ]] || { echo "$found"; return 1; }
}

check "purge: by apt" purge
check "purge: no file of ndk is left" nothing_of_ndk
check "purge: with what came with it" autoremove
check "purge: as before the installation" all_is_gone
finish
