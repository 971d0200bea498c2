// SPDX-License-Identifier: GPL-2.0

#include <linux/filelock.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>

/* Whether the lock is to be waited for. */
bool fuse_rs_helper_lock_is_waiting(const struct file_lock *fl)
{
	return fl->c.flc_flags & FL_SLEEP;
}

/* Whether a process gives up all its locks of the file, as it closes a descriptor. */
bool fuse_rs_helper_lock_is_close(const struct file_lock *fl)
{
	return (fl->c.flc_flags & FL_CLOSE_POSIX) == FL_CLOSE_POSIX;
}

/* Whether the grant is to be told by a call, as a lock manager wants it. */
bool fuse_rs_helper_lock_is_async(const struct file_lock *fl)
{
	return fl->fl_lmops && fl->fl_lmops->lm_grant;
}

/* The number that is @nr in @ns, for everyone; 0 if there is no such process. */
pid_t fuse_rs_helper_pid_from_ns(pid_t nr, struct pid_namespace *ns)
{
	pid_t global;

	rcu_read_lock();
	global = pid_nr(find_pid_ns(nr, ns));
	rcu_read_unlock();
	return global;
}
