/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that luc.ko can be built for, 5.10 and later. Each shim names
 * the change it answers. Which of them have been tested is said below.
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

/*
 * The kernels that luc.ko has been tested on. Another one is told of and taken, if its functions
 * and structures are those that the module was compiled with (layout.c). dkms.conf has the same
 * range.
 */
#define LUC_FIRST_TESTED KERNEL_VERSION(6, 1, 0)
#define LUC_LAST_TESTED KERNEL_VERSION(7, 3, 255)

/*
 * Kernels that give jbd2's fields another meaning under the same names, or crash with luc.ko in a
 * way that no comparison can foresee. None is known yet.
 */
struct luc_bad_kernels {
	unsigned int first;
	unsigned int last;
	const char *why;
};

static const struct luc_bad_kernels __maybe_unused luc_known_bad[] = {
	{ 0, 0, NULL },
};

/*
 * 7.2 frees frozen copies by kfree() and has no jbd2_alloc() and jbd2_free() any more, which took
 * those below a page from caches of their own.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define LUC_JBD2_HAS_ALLOC 1
#else
#define LUC_JBD2_HAS_ALLOC 0
#endif

#ifndef CONFIG_X86_64
#error "luc.ko is written for x86-64"
#endif

/*
 * 5.11, "ftrace: Have the callbacks receive a struct ftrace_regs instead of pt_regs"
 * (d19ad0775dcd) and "ftrace/x86: Allow for arguments to be passed in to ftrace_regs by default"
 * (02a474ca266a): the arguments and the instruction pointer are there without saving all registers,
 * which costs more than what we do with them. Before, all had to be saved.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
typedef struct ftrace_regs luc_ftrace_regs;
#define LUC_FTRACE_REGS 0
#else
typedef struct pt_regs luc_ftrace_regs;
#define LUC_FTRACE_REGS FTRACE_OPS_FL_SAVE_REGS
#endif

/*
 * 6.2, "ftrace: abstract DYNAMIC_FTRACE_WITH_ARGS accesses" (94d095ffa0e1): the fields of struct
 * ftrace_regs got macros; 6.13 took the fields away.
 */
#ifdef ftrace_regs_get_argument
#define luc_second_argument(fregs) ftrace_regs_get_argument(fregs, 1)
#define luc_go_to(fregs, address) ftrace_regs_set_instruction_pointer(fregs, address)
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
#define luc_second_argument(fregs) ((fregs)->regs.si)
#define luc_go_to(fregs, address) ((fregs)->regs.ip = (address))
#else
#define luc_second_argument(regs) ((regs)->si)
#define luc_go_to(regs, address) ((regs)->ip = (address))
#endif

/*
 * 5.11, "ftrace: Reverse what the RECURSION flag means in the ftrace_ops" (a25d036d939a): before,
 * the flag said that a callback protects itself, and since then that it wants to be protected. Ours
 * only compare addresses and call nothing that is traced, so they need no protection.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
#define LUC_FTRACE_RECURSION 0
#else
#define LUC_FTRACE_RECURSION FTRACE_OPS_FL_RECURSION_SAFE
#endif

#endif /* LUC_COMPAT_H */
