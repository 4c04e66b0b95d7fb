# SPDX-License-Identifier: GPL-2.0
#
# The objects that a configured kernel tree compiles in the folder $(obj) and below
# it, one a line: the kernel's own makefiles say which, and nothing is built.
# scripts/kernel-build calls it in the tree.

list := $(lastword $(MAKEFILE_LIST))
srcroot := $(srctree)
objtree := .
need-modorder := 1
include $(srctree)/scripts/Makefile.build

.PHONY: list-objects $(addprefix list/,$(subdir-ym))
list-objects: $(addprefix list/,$(subdir-ym))
	@printf '%s\n' $(sort $(filter %.o,$(real-obj-y) $(real-obj-m) $(lib-y)))

$(addprefix list/,$(subdir-ym)): list/%:
	@make -rR -s --no-print-directory -f $(list) obj=$* list-objects
