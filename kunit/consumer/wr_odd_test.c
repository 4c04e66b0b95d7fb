// SPDX-License-Identifier: GPL-2.0
/*
 * The cases of wr_test.c with requests and lists at odd addresses, as in packed
 * structures.  A Rust reference to such an address is undefined behaviour: it
 * panics where the kernel has Rust's debug assertions (um-debug), and shows
 * nowhere else.
 */
#define NDKC_ODD
#include "wr_test.c"
