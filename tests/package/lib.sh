# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# What the steps of scripts/test-package share.  Source it.  The steps run as root
# in a Debian root of their own; /share is where they leave things for each other.

. "$(dirname "${BASH_SOURCE[0]}")/../../selftests/lib.sh"

# The folders in which a package or DKMS leaves files.
PLACES=(/usr/src /usr/include /usr/lib/modules /usr/lib/systemd /usr/share/doc /usr/share/man
	/usr/share/lintian /var/lib/dkms /var/cache/ndk-dkms /etc)

# list_files: all that is there, but for what apt and dpkg keep of every package.
list_files() {
	{ find "${PLACES[@]}" 2>/dev/null || true; } | sort
}

# kernel SERIES: the release of the installed headers of that series.
kernel() {
	local build
	for build in /usr/lib/modules/"$1"*/build; do
		[[ -e $build/include ]] || continue
		build=${build%/build}
		echo "${build##*/}"
		return
	done
	return 1
}

version() { dpkg-query -W -f '${Version}' ndk-dkms; }

# dkms_state RELEASE: installed, built, added, or nothing.
dkms_state() {
	dkms status -m ndk -v "$(version)" -k "$1" | sed -n 's/.*: \([a-z]*\).*/\1/p'
}

is_installed() { [[ $(dkms_state "$1") == installed && -n $(module_file "$1") ]]; }

module_file() { find "/usr/lib/modules/$1/updates" -name 'ndk.ko*' 2>/dev/null; }
