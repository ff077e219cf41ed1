/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that luc.ko can be built for, 5.10 and later. Each shim names
 * the change it answers.
 */
#ifndef LUC_COMPAT_H
#define LUC_COMPAT_H

#include <linux/ftrace.h>
#include <linux/jbd2.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 10, 0)
#error "luc.ko needs Linux 5.10 or later"
#endif

#ifndef CONFIG_X86_64
#error "luc.ko is written for x86-64"
#endif

/*
 * 5.11, "ftrace: Have the callbacks receive a struct ftrace_regs instead of pt_regs"
 * (d19ad0775dcd).
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
typedef struct ftrace_regs luc_ftrace_regs;

static __always_inline struct pt_regs *luc_pt_regs(luc_ftrace_regs *fregs)
{
	return ftrace_get_regs(fregs);
}
#else
typedef struct pt_regs luc_ftrace_regs;

static __always_inline struct pt_regs *luc_pt_regs(luc_ftrace_regs *regs)
{
	return regs;
}
#endif

/*
 * 5.11, "ftrace: Reverse what the RECURSION flag means in the ftrace_ops" (a25d036d939a): before,
 * the flag said that a callback protects itself. luc_redirect() only compares addresses and calls
 * nothing that is traced, so it needs no protection in either sense.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
#define LUC_FTRACE_RECURSION FTRACE_OPS_FL_RECURSION
#else
#define LUC_FTRACE_RECURSION FTRACE_OPS_FL_RECURSION_SAFE
#endif

#endif /* LUC_COMPAT_H */
