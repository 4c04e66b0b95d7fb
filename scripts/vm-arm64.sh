# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# The machine of scripts/vm --kernel arm64: QEMU's `virt` with a processor of
# ARMv8.2, whose atomic instructions the kernel uses.  Sourced by scripts/vm, whose
# variables it uses.
. "$NDK_TOP/scripts/apt.sh"

# What scripts/guest-init and scripts/guest-kunit call.
ARM64_PACKAGES=(bash coreutils grep iproute2 kmod mawk mount sed util-linux)

# What this machine does not have.
refuse_for_arm64() {
	((!icount && !interactive && !${#plugins[@]} && !${#net[@]})) ||
		die "--kernel arm64 has no --icount, --interactive, --plugin and --net"
}

# A Debian of that architecture in the cache, unpacked and not installed: nothing of
# it is run here.  What an installation would have made is the one link.
arm64_root() {
	root=$NDK_CACHE/root/arm64-$DEBIAN_SUITE-$(echo "${ARM64_PACKAGES[*]}" | sha256sum | cut -c1-8)
	[[ ! -d $root ]] || return 0
	mkdir -p "$NDK_CACHE/root"
	exec 8>"$root.lock"
	flock -n 8 || { say "waiting for another set-up of the arm64 root"; flock 8; }
	if [[ ! -d $root ]]; then
		can_be_root || die "$CANNOT_BE_ROOT"
		rm -rf "$root.new"
		mkdir -p "$root.new"
		mmdebstrap --quiet --architectures=arm64 --variant=extract --format=tar \
			--include="$(IFS=,; echo "${ARM64_PACKAGES[*]}")" \
			--aptopt='Acquire::Languages "none"' "$DEBIAN_SUITE" - "$(mirror)" |
			tar -x -C "$root.new" --no-same-owner --exclude='./dev/*'
		ln -s mawk "$root.new/usr/bin/awk"
		mv "$root.new" "$root"
	fi
	exec 8>&-
}

# guest-init is in the tree, which it mounts itself: its first stage runs from the root.
arm64_init() {
	local first=$NDK_TOP/scripts/guest-init
	init=/sbin/guest-init-$(sha256sum "$first" | cut -c1-12)
	[[ -x $root$init ]] || { cp "$first" "$root$init.$$" && mv "$root$init.$$" "$root$init"; }
}

# What the command prints comes through a port to standard output, and the kernel's
# log through the serial line to standard error.
arm64_arguments() {
	local root init root_options=trans=virtio,version=9p2000.L,access=any,cache=loose,msize=524288
	"$NDK_TOP/scripts/setup" arm64
	arm64_root
	arm64_init
	# shellcheck disable=SC2054 # the commas are QEMU's
	machine=(qemu-system-aarch64 -machine virt,gic-version=3 -cpu neoverse-n1
		-accel tcg,thread=multi -smp "$cpus" -m "$mem"
		-nodefaults -no-user-config -display none -no-reboot
		-chardev file,id=log,path=/proc/self/fd/2 -serial chardev:log
		-device virtio-rng-device
		-device virtio-serial-device,max_ports=2
		-chardev file,id=out,path=/proc/self/fd/1
		-device virtserialport,chardev=out,name=virtme.stdout
		-fsdev "local,id=root,path=$root,security_model=none,readonly=on"
		-device virtio-9p-device,fsdev=root,mount_tag=root
		-fsdev "local,id=tree,path=$NDK_TOP,security_model=none,multidevs=remap"
		-device virtio-9p-device,fsdev=tree,mount_tag=virtme.initmount0
		-kernel "$kernel/arch/arm64/boot/Image"
		-append "console=ttyAMA0 root=root rootfstype=9p rootflags=$root_options ro init=$init ${kernel_options[*]}")
}
