/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel interface of ndk: NDKPI 1.2 as tables of C functions. Include
 * this file; it includes the rest.
 */
#ifndef NDK_NDK_H
#define NDK_NDK_H

#include <ndk/adapter.h>
#include <ndk/connection.h>
#include <ndk/memory.h>
#include <ndk/queue.h>
#include <ndk/status.h>
#include <ndk/types.h>

/**
 * DOC: ndk
 *
 * A consumer opens an adapter, makes objects through its functions and theirs,
 * and in the end closes the objects and the adapter::
 *
 *	MODULE_IMPORT_NS("NDK");
 *
 *	status = ndk_open_adapter(&params, &adapter);
 *	status = adapter->dispatch->create_pd(adapter, created, &req, &pd);
 *
 * No entry of a table is NULL. The comment of each names the page of NDKPI that
 * describes it, and says how it is used:
 *
 * - Context: "any but hard interrupt" is process or softirq context, also under
 *   a spinlock; the call does not sleep. "process" may sleep.
 * - Completion: "at once" is done when it returns.
 * - Completion: "create" is either done when it returns, with the object in the
 *   last argument, or PENDING. Then the last argument is never written, and the
 *   object comes with the completion, which may run before the call returns.
 * - Completion: "request" is the same without an object.
 * - Completion: "result" is a work request; accepted or refused when it
 *   returns, and done when its result is in a completion queue.
 * - A call that may pend wants a completion: without one it is refused with
 *   INVALID_PARAMETER. Making domains, regions, connectors and listeners never
 *   pends.
 * - Status: those that are its own, NDK_STATUS_ left out. Others are possible:
 *   test with ndk_failed(). After a failure no completion follows.
 *
 * Context pointers belong to the consumer: never looked at, given back as they
 * were, NULL allowed.
 *
 * Objects: an adapter makes protection domains, completion queues, connectors,
 * listeners and shared endpoints; a protection domain makes the rest. An object
 * may be closed before those made from it; its close then pends.
 *
 * Objects that a call brings together must belong together: completion queues,
 * queue pairs, connectors and shared endpoints to the same open adapter, not only
 * to the same device; shared receive queues, regions and windows to the protection
 * domain of the queue pair. Others are refused with INVALID_PARAMETER, and stay as
 * they are.
 */

/**
 * struct ndk_open_params - which adapter to open
 * @name: of the RDMA device, as in "ndk0"; NULL: whichever has @local_address
 * @local_address: an address of the adapter; NULL if @name is given. If both
 *	are given, both must fit.
 * @net: the network namespace, kept by the caller during the call; NULL: the
 *	first one. It counts for names and for addresses.
 * @version: the version that the consumer was written for, %NDK_VERSION_MAJOR
 *	and %NDK_VERSION_MINOR
 *
 * An adapter is found among the devices that @net sees: all, or after "rdma
 * system set netns exclusive" those that are in @net themselves ("rdma dev set
 * NAME netns"), as programs in @net see them with "rdma dev". Names are unique
 * among these.
 *
 * @name is the device's name at the time of the call: after "rdma dev set NAME
 * name OTHER" has returned it is found by OTHER, and NAME may be another device's.
 * A device that is not registered yet, or not any more, has none. @local_address
 * is an address of the device's network device, which has to be in @net, too;
 * without @name a loopback address is one of any such device. Renaming a network
 * device changes nothing.
 *
 * An adapter that is open stays that of its device, whatever becomes of the names
 * and of the namespaces.
 */
struct ndk_open_params {
	const char *name;
	const struct sockaddr *local_address;
	struct net *net;
	struct ndk_version version;
};

/**
 * ndk_open_adapter() - open an adapter (OPEN_NDK_ADAPTER_HANDLER)
 * @params: which; read during the call only
 * @adapter: the adapter, on success
 *
 * Each call gives an adapter of its own, also for the same device. The version
 * in its header is the highest that ndk serves, not the one asked for. While it
 * is open the module cannot go. The device can, but not before every adapter of
 * it is closed: when it is to go, all queues fail, and an armed one says so with
 * %NDK_STATUS_INTERNAL_ERROR; a consumer that has armed nothing is not notified.
 *
 * Context: process, may sleep.
 * Return: %NDK_STATUS_SUCCESS, %NDK_STATUS_BAD_VERSION,
 * %NDK_STATUS_ADAPTER_NOT_FOUND, %NDK_STATUS_ADAPTER_NOT_READY,
 * %NDK_STATUS_INVALID_PARAMETER (neither name nor address),
 * %NDK_STATUS_INSUFFICIENT_RESOURCES. Exported in the namespace "NDK".
 */
s32 ndk_open_adapter(const struct ndk_open_params *params,
		     struct ndk_adapter **adapter);

/**
 * ndk_close_adapter() - close an adapter (CLOSE_NDK_ADAPTER_HANDLER)
 * @adapter: the adapter; gone afterwards. NULL does nothing.
 *
 * Waits until every object made from it is closed and every callback has
 * returned, so that the consumer's module may go. Close them before: what is not
 * closed is waited for without end. @adapter itself stays as long as this waits,
 * but calls with it are refused with INVALID_PARAMETER and a warning.
 *
 * Not from a callback, nor with softirqs off: that is warned of once, nothing is
 * waited for, and the adapter goes, and with it its reference to the module of
 * ndk, when its last object has.
 *
 * Context: process, may sleep. Exported in the namespace "NDK".
 */
void ndk_close_adapter(struct ndk_adapter *adapter);

/* Of all of the above. */
#include <ndk/layout.h>

#endif
