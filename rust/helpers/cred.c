// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

/* The credentials of the running task, without a reference: valid until it changes them. */
const struct cred *fuse_rs_helper_current_cred(void)
{
	return current_cred();
}

/* These are inline only without CONFIG_USER_NS. */

kuid_t fuse_rs_helper_make_kuid(struct user_namespace *ns, uid_t uid)
{
	return make_kuid(ns, uid);
}

kgid_t fuse_rs_helper_make_kgid(struct user_namespace *ns, gid_t gid)
{
	return make_kgid(ns, gid);
}

gid_t fuse_rs_helper_from_kgid(struct user_namespace *ns, kgid_t gid)
{
	return from_kgid(ns, gid);
}

uid_t fuse_rs_helper_from_kuid_munged(struct user_namespace *ns, kuid_t uid)
{
	return from_kuid_munged(ns, uid);
}

gid_t fuse_rs_helper_from_kgid_munged(struct user_namespace *ns, kgid_t gid)
{
	return from_kgid_munged(ns, gid);
}

struct user_namespace *fuse_rs_helper_get_user_ns(struct user_namespace *ns)
{
	return get_user_ns(ns);
}

void fuse_rs_helper_put_user_ns(struct user_namespace *ns)
{
	put_user_ns(ns);
}
