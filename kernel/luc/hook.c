// SPDX-License-Identifier: GPL-2.0
/*
 * Wrapping jbd2's functions while they run: an ftrace callback at a function's entry moves the
 * instruction pointer to our wrapper, which calls the original; that call comes from this module
 * and is let through.
 *
 * One ftrace_ops per group of functions, not per function: each registration and removal waits for
 * all tasks, and that is most of what loading and unloading take.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "compat.h"
#include "luc.h"

struct luc_hook {
	const char *name;
	void *original;
	void *wrapper;
};

/* Those that count; the first only for buffers that a commit writes. */
static struct luc_hook luc_counting[] = {
	{ "jbd2_journal_get_write_access", jbd2_journal_get_write_access,
	  luc_wrap_get_write_access },
	{ "jbd2_complete_transaction", jbd2_complete_transaction, luc_wrap_complete_transaction },
	{ "jbd2_journal_force_commit", jbd2_journal_force_commit, luc_wrap_force_commit },
	{ "jbd2_log_wait_commit", jbd2_log_wait_commit, luc_wrap_wait_commit },
};

/* Those that act; the first two originals are found at load. */
static struct luc_hook luc_acting[] = {
	{ "jbd2_journal_commit_transaction", NULL, luc_wrap_commit },
	{ "jbd2_journal_write_metadata_buffer", NULL, luc_wrap_write_metadata },
	{ "jbd2_journal_load", jbd2_journal_load, luc_wrap_journal_load },
	{ "jbd2_journal_destroy", jbd2_journal_destroy, luc_wrap_journal_destroy },
};

/* A wrapper is called with the arguments of its original: a changed signature is a build error. */
#define LUC_WRAPS(wrapper, function) static_assert(__same_type(&(wrapper), &(function)))
LUC_WRAPS(luc_wrap_get_write_access, jbd2_journal_get_write_access);
LUC_WRAPS(luc_wrap_complete_transaction, jbd2_complete_transaction);
LUC_WRAPS(luc_wrap_force_commit, jbd2_journal_force_commit);
LUC_WRAPS(luc_wrap_wait_commit, jbd2_log_wait_commit);
LUC_WRAPS(luc_wrap_commit, jbd2_journal_commit_transaction);
LUC_WRAPS(luc_wrap_write_metadata, jbd2_journal_write_metadata_buffer);
LUC_WRAPS(luc_wrap_journal_load, jbd2_journal_load);
LUC_WRAPS(luc_wrap_journal_destroy, jbd2_journal_destroy);

/* Tasks inside wrappers. Entered here and left there: only the sum means anything. */
static DEFINE_PER_CPU(long, luc_inside);
static bool luc_leaving;

/* ENDBR, where there is one, and the call to ftrace are within this many bytes of a function's
 * start. */
#define LUC_ENTRY_BYTES 16

static __always_inline void notrace luc_redirect(const struct luc_hook *hooks, size_t count,
						 unsigned long ip, unsigned long parent_ip,
						 luc_ftrace_regs *fregs)
{
	size_t i;

	/* The wrapper's own call of the original. */
	if (within_module(parent_ip, THIS_MODULE))
		return;
	for (i = 0; i < count; i++) {
		if (ip - (unsigned long)hooks[i].original < LUC_ENTRY_BYTES) {
			luc_go_to(fregs, (unsigned long)hooks[i].wrapper);
			return;
		}
	}
}

static void notrace luc_redirect_counting(unsigned long ip, unsigned long parent_ip,
					  struct ftrace_ops *ops, luc_ftrace_regs *fregs)
{
	/*
	 * Called many times in every operation, and nearly always there is nothing to wait for:
	 * then not even the wrapper is. The buffer is the second argument.
	 */
	if (ip - (unsigned long)luc_counting[0].original < LUC_ENTRY_BYTES &&
	    !buffer_shadow((struct buffer_head *)luc_second_argument(fregs)))
		return;
	luc_redirect(luc_counting, ARRAY_SIZE(luc_counting), ip, parent_ip, fregs);
}

static void notrace luc_redirect_acting(unsigned long ip, unsigned long parent_ip,
					struct ftrace_ops *ops, luc_ftrace_regs *fregs)
{
	luc_redirect(luc_acting, ARRAY_SIZE(luc_acting), ip, parent_ip, fregs);
}

/* PERMANENT: ftrace refuses us while it is switched off, and cannot be switched off under us. */
#define LUC_FTRACE_FLAGS                                                                           \
	(LUC_FTRACE_REGS | LUC_FTRACE_RECURSION | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT)

static struct ftrace_ops luc_counting_ops = {
	.func = luc_redirect_counting,
	.flags = LUC_FTRACE_FLAGS,
};

static struct ftrace_ops luc_acting_ops = {
	.func = luc_redirect_acting,
	.flags = LUC_FTRACE_FLAGS,
};

/* To be called first in every wrapper. */
void luc_enter(void)
{
	this_cpu_inc(luc_inside);
}

/* To be called last in every wrapper. */
void luc_leave(void)
{
	this_cpu_dec(luc_inside);
}

/* Whether the module is being unloaded: nobody may be kept waiting any more. */
bool luc_is_leaving(void)
{
	return READ_ONCE(luc_leaving);
}

static long luc_count_inside(void)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu (cpu)
		sum += READ_ONCE(*per_cpu_ptr(&luc_inside, cpu));
	return sum;
}

static int luc_install(struct ftrace_ops *ops, const struct luc_hook *hooks, size_t count)
{
	size_t i;
	int error;

	for (i = 0; i < count; i++) {
		error = ftrace_set_filter_ip(ops, (unsigned long)hooks[i].original, 0, 0);
		if (error) {
			pr_err("luc: ftrace cannot trace %s (%d): this kernel cannot run luc.ko\n",
			       hooks[i].name, error);
			error = -EOPNOTSUPP;
			goto undo;
		}
	}
	error = register_ftrace_function(ops);
	if (!error)
		return 0;
	if (error == -EBUSY)
		pr_err("luc: ftrace is switched off (sysctl kernel.ftrace_enabled=1 turns it on), "
		       "or a live patch already replaces %s\n",
		       hooks[0].name);
	else
		pr_err("luc: ftrace refused the hooks on %s and others (%d)\n", hooks[0].name,
		       error);
	if (error == -EINVAL)
		error = -EOPNOTSUPP;
undo:
	ftrace_free_filter(ops);
	return error;
}

static void luc_uninstall(struct ftrace_ops *ops)
{
	unregister_ftrace_function(ops);
	ftrace_free_filter(ops);
}

/*
 * A task that ftrace has sent to a wrapper may be preempted before it is counted there, and one
 * that is no longer counted may not have returned yet: each end of the count is followed by a grace
 * period in which every task has left the code it was in of its own will.
 */
static void luc_wait_for_wrappers(void)
{
	unsigned int waited_ms = 0;

	synchronize_rcu_tasks();
	while (luc_count_inside()) {
		msleep(1);
		if (++waited_ms % 10000 == 0)
			pr_info("luc: unloading waits for %ld calls that wait for the disk\n",
				luc_count_inside());
	}
	synchronize_rcu_tasks();
}

int luc_hooks_install(void)
{
	int error;

	luc_acting[0].original = luc_symbols.commit_transaction;
	luc_acting[1].original = luc_symbols.write_metadata_buffer;
	error = luc_install(&luc_acting_ops, luc_acting, ARRAY_SIZE(luc_acting));
	if (error)
		return error;
	error = luc_install(&luc_counting_ops, luc_counting, ARRAY_SIZE(luc_counting));
	if (error) {
		WRITE_ONCE(luc_leaving, true);
		luc_uninstall(&luc_acting_ops);
		luc_wait_for_wrappers();
	}
	return error;
}

void luc_hooks_remove(void)
{
	WRITE_ONCE(luc_leaving, true);
	luc_journals_stop();
	luc_uninstall(&luc_counting_ops);
	luc_uninstall(&luc_acting_ops);
	luc_wait_for_wrappers();
}
