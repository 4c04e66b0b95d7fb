# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the scripts of this folder, behind those of selftests.

# leaks: prints the objects that kmemleak finds.  It reports an object by the second scan that
# finds no pointer to it, and none that is younger than five seconds; a pointer in memory that is
# freed late hides one from a scan.
leaks() {
	local file=/sys/kernel/debug/kmemleak scan
	for ((scan = 0; scan < 5; scan++)); do
		((scan == 0)) || sleep 6
		put scan "$file" || return
		! grep -q . "$file" || break
	done
	cat "$file"
}

# reader_waits FILE: a task has opened it, past all caches, and goes on with reader_goes, to read
# one page.
reader_waits() {
	rm -f /tmp/ndk-go && mkfifo /tmp/ndk-go || return
	python3 -c '
import mmap, os, sys
page = mmap.mmap(-1, 4096)
file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
os.preadv(file, [page], 4096)
print("waits", flush=True)
open("/tmp/ndk-go").close()
print(os.preadv(file, [page], 0), flush=True)
' "$1" >/tmp/ndk-reader 2>&1 &
	reader=$!
	defer kill "$reader"
	wait_for 60 grep -qx waits /tmp/ndk-reader || { tail -n 1 /tmp/ndk-reader; return 1; }
}

reader_goes() { : >/tmp/ndk-go; }

is_read() { grep -qx 4096 /tmp/ndk-reader; }

is_in_send() { fault_has_hit "$1" && grep -q cifs_call_async "/proc/$reader/stack"; }

in_send_or_read() { is_in_send "$1" || is_read; }

# no_message_comes: none in a second.
no_message_comes() {
	local before
	before=$(counter sends) && sleep 1 && [[ $(counter sends) == "$before" ]]
}

# held_in_send FILE FAULT [SETTING...]: a task that reads the file waits for the end of its send,
# which the fault has hit.  SMB Direct has messages of its own, behind others: if it has hit one of
# those, another task reads.  The fault goes with the device.
held_in_send() {
	local try
	for ((try = 1; try <= 8; try++)); do
		reader_waits "$1" && wait_for 60 no_message_comes || return
		fault_on "${@:2}" opcode=send usec=60000000 || return
		reader_goes || return
		wait_for 50 in_send_or_read "$2" || { echo "nothing is sent"; return 1; }
		is_read || return 0
	done
	echo "it never hits the request"
	return 1
}

# has_read: the task gets its page.
has_read() { wait_for 240 is_read || { tail -n 1 /tmp/ndk-reader; return 1; }; }

# read_over_another_connection: the task does, as its own goes with the device.
read_over_another_connection() {
	check "the connection goes" del_link "$DEVICE"
	check "and another comes" add_link "$DEVICE" "$NETDEV"
	check "the server listens" wait_for 90 smb_listens
	check "the read ends" has_read
}

# programs_up: a device that programs may use, and the nodes of the connection manager.
programs_up() {
	load_modules
	put 1 /sys/module/ndk/parameters/user_verbs
	device_up
	modprobe -a ib_uverbs rdma_ucm
	wait_for 60 test -c /dev/infiniband/rdma_cm
}
