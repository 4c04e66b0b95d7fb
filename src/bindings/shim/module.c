// SPDX-License-Identifier: GPL-2.0
/* Other modules. */
#include <linux/kobject.h>
#include <linux/module.h>
#include <rdma/iw_cm.h>

#include "../shim.h"

/*
 * References to identifiers of iw_cm are given back by its own code, and it waits
 * for none of them when it goes: a module that names a function of it keeps it.
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
 * Whether /sys/module has it: the list of modules is not for modules to look at.
 * From before its initialisation until after its end; one that is built in has
 * an entry only if it has a parameter or a version.
 */
bool ndk_module_is_loaded(const char *name)
{
	struct kset *modules = ndk_modules();
	struct kobject *found;

	found = modules ? kset_find_obj(modules, name) : NULL;
	kobject_put(found);
	return found;
}
