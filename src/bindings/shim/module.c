// SPDX-License-Identifier: GPL-2.0
/* Other modules. */
#include <linux/kobject.h>
#include <linux/module.h>
#include <rdma/iw_cm.h>

#include "../shim.h"

/*
 * Code of iw_cm gives back the references to its identifiers, and the exit of
 * iw_cm does not wait for that. The reference to a function of iw_cm keeps
 * iw_cm loaded as long as this module.
 */
static const void *const ndk_needs_iw_cm __used = iwcm_reject_msg;

static struct kset *ndk_modules(void)
{
#ifdef MODULE
	return THIS_MODULE->mkobj.kobj.kset;
#else
	return module_kset;
#endif
}

/*
 * Returns true if /sys/module has @name: modules cannot read the list of
 * modules. A module is there from before its initialisation until after its
 * exit; a built-in module only if it has a parameter or a version.
 */
bool ndk_module_is_loaded(const char *name)
{
	struct kset *modules = ndk_modules();
	struct kobject *found;

	found = modules ? kset_find_obj(modules, name) : NULL;
	kobject_put(found);
	return found;
}
