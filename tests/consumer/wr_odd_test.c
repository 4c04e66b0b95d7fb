// SPDX-License-Identifier: GPL-2.0
/*
 * The cases of wr_test.c once more, with requests and lists at odd addresses, as those of packed
 * structures are.
 */
#define NDKC_ODD
#include "wr_test.c"
