#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The guest scenarios and the kernel's storage clients, with what each needs.

    scenarios.py clients          the names of the clients, nvme first
    scenarios.py stock CLIENT...  status 0 if Debian's kernel has all of them
    scenarios.py packages NAME... the lines `COMMAND-OR-FILE PACKAGE` of clients or scenarios;
                                  `all` stands for all clients, `scenarios` for those without
    scenarios.py options SCENARIO the options of scripts/vm for its guest, one a line
"""
import sys
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Client:
    """A storage client: selftests/clients/NAME.sh."""

    # Debian's kernel has it.
    stock: bool = True
    # COMMAND-OR-FILE PACKAGE
    packages: tuple = ()


CLIENTS = {
    "nvme": Client(packages=("nvme nvme-cli",)),
    "iser": Client(packages=("iscsid open-iscsi",)),
    "nfs": Client(packages=("/usr/sbin/rpc.mountd nfs-kernel-server", "/sbin/mount.nfs nfs-common", "rpcbind rpcbind", "python3 python3")),
    "rnbd": Client(stock=False),
    "smb": Client(stock=False, packages=("ksmbd.mountd ksmbd-tools", "mount.cifs cifs-utils")),
    "srp": Client(),
}


@dataclass(frozen=True)
class Scenario:
    """A script selftests/NAME.sh; `make test` runs it on um-debug, unless it is of a client and not short."""

    # The limit ends a hang; NDK_SLOW multiplies it.
    seconds: int = 1200
    # Debian's kernel runs it, too.
    stock: bool = True
    # With FULL=1 um-full runs it, too.
    full: bool = False
    # User Mode Linux does not run it.
    machine: bool = False
    # Its guest has these options.
    guest: tuple = ()
    clients: tuple = ()
    # `make test` runs it in short.
    short: bool = False
    packages: tuple = ()
    # These reports in the kernel log do not count.
    tolerated: tuple = ()


# The scheduler's deadline server forwards its timer when that is armed again already: seen once on
# Debian's kernel, emulated (dl_task_timer(), Linux 7.3).  Nothing of ours calls hrtimer_forward().
ALWAYS_TOLERATED = (r"WARNING: kernel/time/hrtimer.c:[0-9]+ at hrtimer_forward",)
# RTRS' client keeps a device that goes for 30 s: it waits for each of its connections to be
# disconnected, of which rdma_cm does not tell it once the device is being removed
# (rtrs_clt_stop_and_destroy_conns()).  A network device waits for that, and says so.
KEPT_BY_RTRS = (r"unregister_netdevice: waiting for ndkdum",)
MORE = ("--mem", "4096")
SIX = ("--cpus", "6", "--net", "user")
SCENARIOS = {
    "bench": Scenario(1800, stock=False),
    "devices": Scenario(1800, guest=MORE, clients=("nfs", "nvme")),
    "faults": Scenario(3600, stock=False),
    "interop": Scenario(2400, stock=False, guest=MORE),
    "iser": Scenario(3600, guest=MORE, clients=("iser",), short=True),
    "link": Scenario(),
    "nfs": Scenario(3600, guest=MORE, clients=("nfs",), short=True),
    "nvme": Scenario(),
    "nvme_client": Scenario(3600, guest=MORE, clients=("nvme",)),
    "paths": Scenario(guest=MORE, clients=("nvme",)),
    "programs": Scenario(
        4500,
        full=True,
        guest=MORE,
        # Debian's kernel warns of tracepoints of hfi1 itself.
        tolerated=(r"WARNING: kernel/trace/trace_events.c:[0-9]+ at test_double_dereference",),
        packages=(
            "rping rdmacm-utils",
            "ibv_devinfo ibverbs-utils",
            "/usr/lib/x86_64-linux-gnu/libibverbs/libhfi1verbs-rdmav34.so ibverbs-providers",
            "ib_send_bw perftest",
            "fi_pingpong libfabric-bin",
            "iscsi-inq libiscsi-bin",
            "/usr/include/infiniband/verbs.h libibverbs-dev",
            "/usr/include/rdma/rdma_cma.h librdmacm-dev",
        ),
    ),
    "pyverbs": Scenario(3600, full=True, guest=MORE, packages=("/usr/share/doc/rdma-core/tests/run_tests.py python3-pyverbs",)),
    "queues": Scenario(machine=True, guest=SIX),
    "reconnect": Scenario(),
    "rnbd": Scenario(4800, stock=False, guest=MORE, clients=("rnbd",), short=True, tolerated=KEPT_BY_RTRS),
    "sample": Scenario(),
    "smb": Scenario(3600, stock=False, guest=MORE, clients=("smb",), short=True),
    "soak": Scenario(3600, stock=False, guest=MORE, clients=tuple(CLIENTS), tolerated=KEPT_BY_RTRS),
    "srp": Scenario(3600, guest=MORE, clients=("srp",), short=True),
    "strangers": Scenario(2400),
    "unplug": Scenario(),
    "virtio": Scenario(machine=True, guest=SIX),
}


def options(*names):
    """Returns the options of scripts/vm for a guest that these scenarios share."""
    tolerated = dict.fromkeys(regex for name in names for regex in ALWAYS_TOLERATED + SCENARIOS[name].tolerated)
    return [*SCENARIOS[names[0]].guest, *(word for regex in tolerated for word in ("--tolerate", regex))]


def script(name):
    return TOP / f"selftests/{name}.sh"


def main():
    match sys.argv[1:]:
        case ["clients"]:
            print(*CLIENTS, sep="\n")
        case ["stock", *names]:
            sys.exit(not all(CLIENTS[name].stock for name in names))
        case ["packages", *names]:
            groups = {"all": CLIENTS, "scenarios": [name for name, s in SCENARIOS.items() if not s.clients]}
            for name in (name for word in names for name in groups.get(word, [word])):
                for line in {**SCENARIOS, **CLIENTS}[name].packages:
                    print(line)
        case ["options", name]:
            print(*options(name), sep="\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
