// SPDX-License-Identifier: GPL-2.0
/*
 * The files in a journal's stats folder. Only root reads them: they tell how often the programs of
 * all users synchronize.
 */
#include <linux/sysfs.h>

#include "compat.h"
#include "luc.h"

/* The sums over all processors. */
void luc_sum_delays(struct luc_journal *lj, struct luc_delays *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu (cpu) {
		const struct luc_delays *delays = per_cpu_ptr(lj->delays, cpu);

		sum->delayed += READ_ONCE(delays->delayed);
		sum->delay_ns += READ_ONCE(delays->delay_ns);
	}
}

#define LUC_STAT(name, format, expression)                                                         \
	static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attribute,         \
				   char *page)                                                     \
	{                                                                                          \
		struct luc_journal *lj = container_of(kobj, struct luc_journal, kobj);             \
		struct luc_counts counts;                                                          \
		u64 copy_bytes_in_use;                                                             \
                                                                                                   \
		spin_lock(&lj->lock);                                                              \
		counts = lj->counts;                                                               \
		copy_bytes_in_use = lj->copy_bytes_in_use;                                         \
		spin_unlock(&lj->lock);                                                            \
		(void)copy_bytes_in_use;                                                           \
		return sysfs_emit(page, format "\n", expression);                                  \
	}                                                                                          \
	static struct kobj_attribute luc_stat_##name = __ATTR(name, 0400, name##_show, NULL)

#define LUC_DELAY_STAT(name, field)                                                                \
	static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attribute,         \
				   char *page)                                                     \
	{                                                                                          \
		struct luc_delays sum;                                                             \
                                                                                                   \
		luc_sum_delays(container_of(kobj, struct luc_journal, kobj), &sum);                \
		return sysfs_emit(page, "%llu\n", sum.field);                                      \
	}                                                                                          \
	static struct kobj_attribute luc_stat_##name = __ATTR(name, 0400, name##_show, NULL)

LUC_STAT(commits, "%llu", counts.commits);
LUC_STAT(commits_by_fsync, "%llu", counts.commits_by_fsync);
LUC_STAT(fsyncs, "%llu", counts.fsyncs);
LUC_STAT(fsyncs_last_commit, "%u", counts.fsyncs_last_commit);
LUC_STAT(fsyncs_waited_two, "%llu", counts.fsyncs_waited_two);
LUC_STAT(holds, "%llu", counts.holds);
LUC_STAT(hold_ns, "%llu", counts.hold_ns);
LUC_STAT(holds_awaited, "%llu", counts.holds_awaited);
LUC_STAT(set_point, "%u", counts.set_point);
LUC_STAT(error_milli, "%d", counts.error_milli);
LUC_STAT(output_us, "%u", counts.output_us);
LUC_STAT(writes, "%llu", counts.writes);
LUC_STAT(copies, "%llu", counts.copies);
LUC_STAT(copy_bytes, "%llu", counts.copy_bytes);
LUC_STAT(copies_failed, "%llu", counts.copies_failed);
LUC_STAT(copy_bytes_in_use, "%llu", copy_bytes_in_use);
LUC_DELAY_STAT(writes_delayed, delayed);
LUC_DELAY_STAT(write_delay_ns, delay_ns);

static ssize_t state_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	struct luc_journal *lj = container_of(kobj, struct luc_journal, kobj);
	const char *state;

	spin_lock(&lj->lock);
	state = luc_policy_state(lj);
	spin_unlock(&lj->lock);
	return sysfs_emit(page, "%s\n", state);
}

static struct kobj_attribute luc_stat_state = __ATTR(state, 0400, state_show, NULL);

static struct attribute *luc_stats[] = {
	&luc_stat_commits.attr,
	&luc_stat_commits_by_fsync.attr,
	&luc_stat_fsyncs.attr,
	&luc_stat_fsyncs_last_commit.attr,
	&luc_stat_fsyncs_waited_two.attr,
	&luc_stat_holds.attr,
	&luc_stat_hold_ns.attr,
	&luc_stat_holds_awaited.attr,
	&luc_stat_set_point.attr,
	&luc_stat_error_milli.attr,
	&luc_stat_output_us.attr,
	&luc_stat_state.attr,
	&luc_stat_writes.attr,
	&luc_stat_writes_delayed.attr,
	&luc_stat_write_delay_ns.attr,
	&luc_stat_copies.attr,
	&luc_stat_copy_bytes.attr,
	&luc_stat_copies_failed.attr,
	&luc_stat_copy_bytes_in_use.attr,
	NULL,
};

const struct attribute_group luc_stats_group = {
	.name = "stats",
	.attrs = luc_stats,
};
