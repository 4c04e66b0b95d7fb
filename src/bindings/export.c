// SPDX-License-Identifier: GPL-2.0
/*
 * The two functions that the NDK face exports, and the module parameters.  An
 * open adapter holds the module, also for a consumer that found the functions
 * by name.
 */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <ndk/ndk.h>

#include "export.h"

s32 ndk_open_adapter(const struct ndk_open_params *params,
		     struct ndk_adapter **adapter)
{
	s32 status;

	if (!try_module_get(THIS_MODULE))
		return NDK_STATUS_ADAPTER_NOT_READY;
	status = ndk_face_open(params, adapter);
	if (status != NDK_STATUS_SUCCESS)
		module_put(THIS_MODULE);
	return status;
}
EXPORT_SYMBOL_NS_GPL(ndk_open_adapter, "NDK");

/*
 * Gives back the reference of an adapter that goes after its close has
 * returned.  The module's exit waits for the work that calls this.
 */
static void ndk_put_module(void *context)
{
	module_put(THIS_MODULE);
}

/* Each open adapter has one module reference, which ends with the adapter. */
void ndk_close_adapter(struct ndk_adapter *adapter)
{
	if (ndk_face_close(adapter, ndk_put_module, NULL))
		module_put(THIS_MODULE);
}
EXPORT_SYMBOL_NS_GPL(ndk_close_adapter, "NDK");

module_param_named(rnr_timeout_ms, ndk_rnr_timeout_ms, uint, 0444);
MODULE_PARM_DESC(rnr_timeout_ms,
		 "How long a message waits for a receive, in milliseconds: 1 to 600000 (30000); for one of a shared queue it waits as long as it takes");

module_param_named(link_type, ndk_link_type, charp, 0444);
MODULE_PARM_DESC(link_type,
		 "The type of rdma link add: ndk; or siw or rxe, for scripts that were written for those");

module_param_named(mpa_crc, ndk_mpa_crc, bool, 0644);
MODULE_PARM_DESC(mpa_crc,
		 "Connections to other hosts made from now on carry CRCs (on); off: only if the other host demands them");

module_param_named(user_verbs, ndk_user_verbs, bool, 0644);
MODULE_PARM_DESC(user_verbs,
		 "Devices made from now on serve programs, too, by rdma-core's libhfi1verbs (off)");

#ifdef NDK_VERSION
MODULE_VERSION(NDK_VERSION);
#endif
