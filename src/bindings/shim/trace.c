// SPDX-License-Identifier: GPL-2.0
/* The tracepoints themselves, and the functions behind them that Rust calls. */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "../trace.h"
