// SPDX-License-Identifier: GPL-2.0
/* The same functions for ndk_kunit.ko: one object file serves one module. */
#include "shim.c"
