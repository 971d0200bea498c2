// SPDX-License-Identifier: GPL-2.0

#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>

/*
 * The module's parameters: /sys/module/fuse_rs/parameters. Here, as the `module!` macro makes none
 * that can be seen or changed there. Rust reads them by the functions below, each time anew.
 */

static unsigned int max_user_bgreq;
static unsigned int max_user_congthresh;
static unsigned int inval_wq;
static bool allow_sys_admin_access;
static bool dropin;

/* INIT has 16 bits for it. Left at 0, as many requests as fit into a small part of the memory. */
static unsigned int user_limit(const unsigned int *param)
{
	unsigned long limit = READ_ONCE(*param);

	if (!limit)
		limit = totalram_pages() * PAGE_SIZE / 8192 / 392;
	return min(limit, (unsigned long)U16_MAX);
}

static int user_limit_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%u\n", user_limit(kp->arg));
}

static const struct kernel_param_ops user_limit_ops = {
	.set = param_set_uint,
	.get = user_limit_get,
};

module_param_cb(max_user_bgreq, &user_limit_ops, &max_user_bgreq, 0644);
__MODULE_PARM_TYPE(max_user_bgreq, "uint");
MODULE_PARM_DESC(max_user_bgreq,
		 "Most background requests of a server without CAP_SYS_ADMIN; 0: by size of memory");

module_param_cb(max_user_congthresh, &user_limit_ops, &max_user_congthresh, 0644);
__MODULE_PARM_TYPE(max_user_congthresh, "uint");
MODULE_PARM_DESC(max_user_congthresh,
		 "Highest congestion threshold of a server without CAP_SYS_ADMIN; 0: by size of memory");

/*
 * Who is told of a new value. The file is there before the module is initialised and after it has
 * exited, when there is nobody to be told.
 */
static DEFINE_MUTEX(inval_wq_lock);
static void (*inval_wq_changed)(void *arg);
static void *inval_wq_arg;

static int inval_wq_set(const char *val, const struct kernel_param *kp)
{
	unsigned int secs;
	int err = kstrtouint(val, 0, &secs);

	if (err)
		return err;
	if ((secs && secs < 5) || secs > U16_MAX)
		return -EINVAL;
	mutex_lock(&inval_wq_lock);
	WRITE_ONCE(inval_wq, secs);
	if (inval_wq_changed)
		inval_wq_changed(inval_wq_arg);
	mutex_unlock(&inval_wq_lock);
	return 0;
}

static const struct kernel_param_ops inval_wq_ops = {
	.set = inval_wq_set,
	.get = param_get_uint,
};

module_param_cb(inval_wq, &inval_wq_ops, &inval_wq, 0644);
__MODULE_PARM_TYPE(inval_wq, "uint");
MODULE_PARM_DESC(inval_wq,
		 "Seconds from one search for names that do not hold any more to the next, at least 5; 0: never");

module_param(allow_sys_admin_access, bool, 0644);
MODULE_PARM_DESC(allow_sys_admin_access,
		 "Let CAP_SYS_ADMIN of the first user namespace use mounts without allow_other");

module_param(dropin, bool, 0444);
MODULE_PARM_DESC(dropin, "Take the names of the in-tree client, which must not be loaded");

unsigned int fuse_rs_helper_param_max_user_bgreq(void)
{
	return user_limit(&max_user_bgreq);
}

unsigned int fuse_rs_helper_param_max_user_congthresh(void)
{
	return user_limit(&max_user_congthresh);
}

unsigned int fuse_rs_helper_param_inval_wq(void)
{
	return READ_ONCE(inval_wq);
}

void fuse_rs_helper_param_on_inval_wq(void (*changed)(void *arg), void *arg)
{
	mutex_lock(&inval_wq_lock);
	inval_wq_changed = changed;
	inval_wq_arg = arg;
	mutex_unlock(&inval_wq_lock);
}

bool fuse_rs_helper_param_allow_sys_admin_access(void)
{
	return READ_ONCE(allow_sys_admin_access);
}

bool fuse_rs_helper_param_dropin(void)
{
	return dropin;
}
