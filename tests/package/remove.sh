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

nothing_of_ndk() {
	local found
	found=$(list_files | grep -iE '/ndk([-_@.]|$)|/ndk/' || true)
	[[ -z $found ]] || { echo "$found"; return 1; }
}

# What was not there before and is no file of the packages that came with it, the
# compilers and DKMS.
new_files() {
	[[ -s /share/files.before ]] || { echo "there is no list of what was there before"; return; }
	list_files | comm -13 /share/files.before - |
		comm -23 - <(sed "s|^/lib/|/usr/lib/|" /var/lib/dpkg/info/*.list | sort -u)
}

# These generate files, too: the key that DKMS signs with, and links.
of_others() {
	[[ $1 =~ ^(/var/lib/dkms/mok\.(key|pub)|/etc/(alternatives|rc[0-6S]\.d)/.*)$ ||
		$(readlink "$1") == /etc/alternatives/* ]]
}

all_is_gone() {
	local file found=''
	while read -r file; do
		of_others "$file" || found+="$file "
	done < <(new_files)
	[[ -z $found ]] || { echo "$found"; return 1; }
}

check "purge: by apt" purge
check "purge: no file of ndk is left" nothing_of_ndk
check "purge: no file is left that belongs to nobody" all_is_gone
finish
