#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the root, outside of a guest: the package is installed by apt from a folder, and
# DKMS builds the module for the kernel that can have it and says of the other why not.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

LOG=/share/install.log
good=$(kernel 7.3)
bad=$(kernel 6)
tree=/var/cache/ndk-dkms/$good

# sentences FILE: how often it says why the other kernel cannot.
sentences() {
	grep -c "ndk cannot be built for Linux $bad: " "$1" || true
}

has_nothing() {
	[[ $(dkms_state "$1") != @(built|installed) && -z $(module_file "$1") ]]
}

install_it() {
	apt-get -y install /share/ndk-dkms_*.deb >"$LOG" 2>&1
}

# As the hooks do it that a kernel's packages call.
hook() {
	"/etc/kernel/postinst.d/dkms" "$1"
}

# A kernel that cannot have the module is installed without a complaint but this.
hook_of_other() {
	local n
	hook "$bad" >/tmp/hook.log 2>&1 || { cat /tmp/hook.log; return 1; }
	n=$(sentences /tmp/hook.log)
	cat /tmp/hook.log
	((n == 1)) || { echo "$n sentences"; return 1; }
}

drop_module() {
	dkms unbuild -m ndk -v "$(version)" -k "$good"
}

rebuild_by_hook() {
	local made
	made=$(stat -c %i "$tree/.made")
	drop_module || return
	! is_installed "$good" || { echo "still there after dkms unbuild"; return 1; }
	hook "$good" || return
	is_installed "$good" || { echo "not installed"; return 1; }
	[[ $(stat -c %i "$tree/.made") == "$made" ]] || { echo "the build tree was made again"; return 1; }
}

# The sentence, the status that DKMS has for it, and no module.
skip_without_rustc() {
	local status=0
	dkms unbuild -m ndk -v "$(version)" -k "$good" || return
	mv /usr/bin/rustc /usr/bin/rustc.away
	dkms build -m ndk -v "$(version)" -k "$good" >/tmp/skip.log 2>&1 || status=$?
	mv /usr/bin/rustc.away /usr/bin/rustc
	cat /tmp/skip.log
	[[ $status == 77 ]] || { echo "dkms build ended with status $status"; return 1; }
	grep -q "Linux $good.*rustc" /tmp/skip.log || { echo "no sentence"; return 1; }
}

# dpkg calls the trigger when linux-source comes or changes.
rebuild_by_trigger() {
	dpkg-trigger --by-package=ndk-dkms "/usr/src/linux-source-7.3.tar.xz" || return
	dpkg --configure --pending || return
	is_installed "$good"
}

alias_is_known() {
	modprobe -S "$good" --show-depends rdma-link-ndk | grep -q '/ndk\.ko'
}

has_version() {
	[[ $(modinfo -k "$good" -F version ndk) == "$(version)" ]]
}

build_sample() {
	rm -rf /share/sample
	cp -R /usr/share/doc/ndk-dkms/examples/ndk_echo /share/sample
	make -C "/lib/modules/$good/build" M=/share/sample ndk_headers=/usr/include \
		KBUILD_EXTRA_SYMBOLS="/var/lib/dkms/ndk/kernel-$good-x86_64/module/Module.symvers" modules
}

list_files >/share/files.before
check "package: installed by apt from a folder" install_it
check "package: built and installed for Linux $good" is_installed "$good"
n=$(sentences "$LOG")
if ((n == 1)); then
	ok "package: one sentence says why not for Linux $bad"
else
	not_ok "package: one sentence says why not for Linux $bad" "$n lines name it"
fi
check "package: nothing for Linux $bad" has_nothing "$bad"
check "package: nor does that kernel's hook fail" hook_of_other
check "package: the module has the package's version" has_version
check "package: found by the alias of rdma link add" alias_is_known
check "package: a kernel's hook builds it again, in the same tree" rebuild_by_hook
check "package: another rustc: skipped, and said" skip_without_rustc
check "package: a new linux-source has it built" rebuild_by_trigger
check "package: the example builds against it" build_sample
check "package: its units can be enabled" systemctl -q enable ndk@lo.service ndk@eth9.service
echo "# build tree: $(du -shc "$tree" "$tree.source" | tail -n 1 | cut -f1)"
finish
