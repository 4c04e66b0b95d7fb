// SPDX-License-Identifier: GPL-2.0
/*
 * The cases of wr_test.c once more, with requests and lists at odd addresses, as those of packed
 * structures are.  A Rust reference to one is undefined behaviour: it panics where the kernel has
 * Rust's debug assertions (um-debug), and shows nowhere else.
 */
#define NDKC_ODD
#include "wr_test.c"
