# SPDX-License-Identifier: GPL-2.0
#
# The way in: every target does its own set-up.  Kbuild holds what is built.

KERNEL_TARGETS := all run test test-clients soak update bench programs blktests check kunit fuzz kcsan conformance cross newest shell rust-analyzer \
	deb test-package intree-check packages

.PHONY: help headers intree clean distclean $(KERNEL_TARGETS)

# What is given on the command line reaches the scripts through the environment.
RUN_KERNEL := $(or $(KERNEL),$(if $(KDIR),kdir))
KERNEL ?= $(if $(KDIR),kdir,stock)
export KERNEL KDIR FILTER QUICK MODE ONLY MAINTAINER BLKTESTS FULL LOAD REPEAT FUZZ_RUNS FUZZ_SECONDS

all: ## build ndk.ko for Debian's kernel, or KDIR=/a/built/7.3/tree, or KERNEL=lean
	@scripts/module-build $(KERNEL)
	@echo "build/$(KERNEL)/ndk.ko"

run: ## boot a guest, NVMe over ndk0, verify, report; CLIENT=nfs|iser|srp|rnbd|smb|nvme|all
	@KERNEL=$(RUN_KERNEL) scripts/run $(CLIENT)

test: ## all tests: host, KUnit, scenarios; ONLY='nvme kunit:ndk_consumer_cq'; CLIENT=none; FULL=1; LOAD=2 REPEAT=10
	@scripts/setup test,stock
	@scripts/test $(CLIENT)

test-clients: ## the scenarios of the kernel's storage clients; CLIENT=nfs for one, KERNEL=debug
	@scripts/setup test,stock
	@scripts/test clients $(or $(RUN_KERNEL),lean) $(CLIENT)

soak: ## all clients at once, with all checkers, verified, with link flaps; MINUTES=10; KERNEL=debug: emulated
	@scripts/soak "$(or $(MINUTES),10)" $(RUN_KERNEL)

bench: ## ndk beside siw, rxe, nvme loop and tcp; QUICK=1: in minutes; MODE=native, MODE=icount
	@scripts/bench

programs: ## programs of rdma-core, perftest, libfabric and so on, on ndk, rxe and siw in one guest: the table of docs/user-space.md
	@scripts/programs

blktests: ## BLKTESTS=/a/checkout: its groups nvme, srp and rnbd on ndk; ONLY='nvme/003 srp'; KERNEL=um-debug: with all checkers, KERNEL=lean: emulated
	@KERNEL=$(RUN_KERNEL) scripts/blktests $(ONLY)

check: ## rustfmt, clippy, layering rules, shellcheck, checkpatch, kernel-doc, requirements
	@scripts/check

kunit: ## the KUnit suites alone; FILTER='ndk_engine_cq*' picks some; KERNEL=um: without the checkers, KERNEL=debug: emulated; OVER=tcp: over TCP, tcp-late: with delays
	@scripts/kunit $(RUN_KERNEL)

fuzz: ## the fuzz targets of the iWARP codecs, by libFuzzer on this machine; ONLY='mpa ddp'; FUZZ_RUNS=10000000 each, or FUZZ_SECONDS=60 in all
	@scripts/fuzz $(ONLY)

kcsan: ## the KUnit suites on a kernel that finds data races, in C and in Rust; FILTER= as for kunit
	@scripts/sample-build um-kcsan quiet
	@tests/scripts/seeded-test um-kcsan
	@scripts/kunit um-kcsan

conformance: ## run all KUnit suites and write build/conformance.md
	@FILTER= scripts/kunit um >build/conformance-um.out || true
	@FILTER= scripts/kunit um-debug >build/conformance-um-debug.out || true
	@scripts/conformance build/conformance-*.out
	@sed -n '/^[0-9]* requirements/,/excepted/p' build/conformance.md

cross: ## build all modules for arm64 with pages of 64 KiB; a warning is an error
	@scripts/module-build cross quiet

newest: ## the same by the newest compilers there are, those of Debian testing, in a root in the cache
	@scripts/setup deb
	@scripts/setup cross
	@scripts/lib/debian-run --newest scripts/module-build newest quiet
	@scripts/lib/debian-run --newest bash -c 'rustc --version && clang --version | head -1'

shell: ## an interactive guest with ndk0 up
	@scripts/module-build $(KERNEL) quiet
	@scripts/vm --kernel $(KERNEL) --interactive -- scripts/guest/shell

update: ## look for a newer kernel of Debian's, which else stays as it was first chosen
	@scripts/lib/kernel-stock --update >/dev/null

packages: ## install at once all that check and test need of Debian
	@scripts/setup check,test,stock all

headers: ## install the C headers for consumers into build/include
	@mkdir -p build/include
	@cp -Rpu include/ndk build/include/

deb: ## build build/deb/ndk-dkms_VERSION_all.deb, for Debian 13
	@scripts/deb

test-package: ## install, use and purge that package on Debian 13 with its own kernel, in a guest
	@scripts/test-package

intree: ## lay the provider into the kernel source tree KSRC=, as drivers/infiniband/sw/ndk
	@scripts/intree "$(KSRC)"

intree-check: ## build and test it there, or in a copy of the cache's source (the first time: about 15 minutes)
	@scripts/intree-check "$(KSRC)"

rust-analyzer: ## write rust-project.json for editors
	@scripts/rust-analyzer

clean: ## remove build/
	rm -rf build rust-project.json

distclean: clean ## also remove the cache, which all clones share: kernels, sources, tools
	@scripts/distclean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

# The scripts write their logs here.
$(KERNEL_TARGETS): | build
build:
	@mkdir -p build
