# SPDX-License-Identifier: GPL-2.0
#
# The way in: every target does its own set-up.  Kbuild holds what is built.

KERNEL_TARGETS := all run test bench check kunit conformance shell rust-analyzer

.PHONY: help headers clean distclean $(KERNEL_TARGETS)

# What is given on the command line reaches the scripts through the environment.
export KDIR FILTER QUICK MODE ONLY

all: ## build ndk.ko against the lean test kernel, or against KDIR=/a/built/7.3/tree
	@scripts/module-build lean
	@echo "build/lean/ndk.ko"

run: ## build, boot a guest, use the device, print a table (the first time: about 12 minutes)
	@scripts/module-build lean quiet
	@scripts/vm --kernel lean -- scripts/demo

test: ## all tests: host, KUnit in User Mode Linux and the debug kernel, guest scenarios
	@scripts/test

bench: ## ndk beside siw, rxe, nvme loop and tcp; QUICK=1: in minutes; MODE=icount: instructions
	@scripts/bench

check: ## rustfmt, clippy, layering rules, shellcheck, checkpatch, kernel-doc, requirements
	@scripts/check

kunit: ## the KUnit suites alone; FILTER='ndk_cq*' picks some; ARCH=um: in User Mode Linux, in a minute
	@scripts/kunit $(ARCH)

conformance: ## run all KUnit suites and write docs/conformance.md
	@FILTER= scripts/kunit um >build/conformance.out || true
	@scripts/conformance build/conformance.out
	@sed -n '/^[0-9]* requirements/,/excepted/p' docs/conformance.md

shell: ## an interactive guest with ndk0 up
	@scripts/module-build lean quiet
	@scripts/vm --kernel lean --interactive -- scripts/guest-shell

headers: ## install the C headers for consumers into build/include
	@mkdir -p build/include
	@cp -Rpu include/ndk build/include/

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
