// SPDX-License-Identifier: GPL-2.0

#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

struct pid *fuse_rs_helper_task_pid(struct task_struct *task)
{
	return task_pid(task);
}
