// SPDX-License-Identifier: GPL-2.0
/* One space of queue pair numbers for the whole module. */
#include <linux/xarray.h>

#include "../shim.h"

static DEFINE_XARRAY_FLAGS(ndk_qpns, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
static u32 ndk_qpn_next = NDK_QPN_FIRST;

int ndk_qpn_reserve(u32 *qpn)
{
	int ret = xa_alloc_cyclic_irq(&ndk_qpns, qpn, NULL,
				      XA_LIMIT(NDK_QPN_FIRST, NDK_QPN_LAST), &ndk_qpn_next,
				      GFP_KERNEL);

	return ret < 0 ? ret : 0;
}

/* Cannot fail: ndk_qpn_reserve() has made the slot. */
void ndk_qpn_publish(u32 qpn, void *qp)
{
	xa_store_irq(&ndk_qpns, qpn, qp, GFP_KERNEL);
}

/* The queue pair is not found any more; its number stays reserved. */
void ndk_qpn_unpublish(u32 qpn)
{
	xa_store_irq(&ndk_qpns, qpn, XA_ZERO_ENTRY, GFP_KERNEL);
}

void *ndk_qpn_find(u32 qpn)
{
	return xa_load(&ndk_qpns, qpn);
}

/* Calls @get while the number is published; NULL if @get returns false. */
void *ndk_qpn_get(u32 qpn, bool (*get)(void *qp))
{
	unsigned long flags;
	void *qp;

	xa_lock_irqsave(&ndk_qpns, flags);
	qp = xa_load(&ndk_qpns, qpn);
	if (qp && !get(qp))
		qp = NULL;
	xa_unlock_irqrestore(&ndk_qpns, flags);
	return qp;
}

void ndk_qpn_free(u32 qpn)
{
	xa_erase_irq(&ndk_qpns, qpn);
}
