// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/luc: what can be seen and set. The files are described in README.md. */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "luc.h"

struct kobject *luc_root;

static const char *const luc_policy_names[] = {
	[LUC_POLICY_OFF] = "off",
	[LUC_POLICY_DELAY] = "delay",
	[LUC_POLICY_PID] = "pid",
	[LUC_POLICY_AUTO] = "auto",
};

static const char *const luc_copy_out_names[] = {
	[LUC_COPY_OUT_OFF] = "off",
	[LUC_COPY_OUT_ON] = "on",
	[LUC_COPY_OUT_HEURISTIC] = "heuristic",
	[LUC_COPY_OUT_AUTO] = "auto",
};

/* sysfs_match_string() ignores a newline at the end, and says -EINVAL to what is no name. */
int luc_parse_policy(const char *text, enum luc_policy *policy)
{
	int index = sysfs_match_string(luc_policy_names, text);

	if (index < 0)
		return index;
	*policy = index;
	return 0;
}

int luc_parse_copy_out(const char *text, enum luc_copy_out *copy_out)
{
	int index = sysfs_match_string(luc_copy_out_names, text);

	if (index < 0)
		return index;
	*copy_out = index;
	return 0;
}

static struct luc_journal *luc_of(struct kobject *kobj)
{
	return container_of(kobj, struct luc_journal, kobj);
}

static ssize_t device_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	dev_t dev = luc_of(kobj)->dev;

	return sysfs_emit(page, "%u:%u\n", MAJOR(dev), MINOR(dev));
}

static ssize_t policy_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%s\n", luc_policy_names[READ_ONCE(luc_of(kobj)->settings.policy)]);
}

static ssize_t policy_store(struct kobject *kobj, struct kobj_attribute *attribute,
			    const char *text, size_t count)
{
	struct luc_journal *lj = luc_of(kobj);
	enum luc_policy policy;
	int error = luc_parse_policy(text, &policy);

	if (error) {
		pr_warn("luc: %s: policy must be off, delay, pid or auto\n", lj->name);
		return error;
	}
	spin_lock(&lj->lock);
	lj->settings.policy = policy;
	luc_policy_reset(lj);
	spin_unlock(&lj->lock);
	return count;
}

static ssize_t copy_out_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%s\n",
			  luc_copy_out_names[READ_ONCE(luc_of(kobj)->settings.copy_out)]);
}

static ssize_t copy_out_store(struct kobject *kobj, struct kobj_attribute *attribute,
			      const char *text, size_t count)
{
	struct luc_journal *lj = luc_of(kobj);
	enum luc_copy_out copy_out;
	int error = luc_parse_copy_out(text, &copy_out);

	if (error) {
		pr_warn("luc: %s: copy_out must be off, on, heuristic or auto\n", lj->name);
		return error;
	}
	spin_lock(&lj->lock);
	lj->settings.copy_out = copy_out;
	lj->copying.clean_runs = 0;
	spin_unlock(&lj->lock);
	return count;
}

static struct kobj_attribute luc_device = __ATTR_RO(device);
static struct kobj_attribute luc_policy = __ATTR_RW(policy);
static struct kobj_attribute luc_copy_out = __ATTR_RW(copy_out);

/* A setting that is a number: where it is and what it may be. */
struct luc_number {
	struct kobj_attribute attribute;
	size_t offset;
	u32 low, high;
};

static u32 *luc_number_in(struct luc_journal *lj, const struct luc_number *number)
{
	return (u32 *)((char *)&lj->settings + number->offset);
}

static ssize_t luc_number_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	struct luc_number *number = container_of(attribute, struct luc_number, attribute);

	return sysfs_emit(page, "%u\n", READ_ONCE(*luc_number_in(luc_of(kobj), number)));
}

static ssize_t luc_number_store(struct kobject *kobj, struct kobj_attribute *attribute,
				const char *text, size_t count)
{
	struct luc_number *number = container_of(attribute, struct luc_number, attribute);
	struct luc_journal *lj = luc_of(kobj);
	u32 value;

	if (kstrtou32(text, 10, &value) || value < number->low || value > number->high) {
		pr_warn("luc: %s: %s must be a whole number from %u to %u\n", lj->name,
			attribute->attr.name, number->low, number->high);
		return -EINVAL;
	}
	spin_lock(&lj->lock);
	*luc_number_in(lj, number) = value;
	spin_unlock(&lj->lock);
	return count;
}

#define LUC_NUMBER(name, least, most)                                                              \
	static struct luc_number luc_number_##name = {                                             \
		.attribute = __ATTR(name, 0644, luc_number_show, luc_number_store),                \
		.offset = offsetof(struct luc_settings, name),                                     \
		.low = least,                                                                      \
		.high = most,                                                                      \
	}

LUC_NUMBER(delay_us, 0, LUC_MAX_HOLD_US);
LUC_NUMBER(max_restarts, 0, 1000000);
LUC_NUMBER(timeout_us, 0, LUC_MAX_HOLD_US);
LUC_NUMBER(max_hold_us, 0, LUC_MAX_HOLD_US);
LUC_NUMBER(set_point, 0, 1000000);
LUC_NUMBER(kp_milli, 0, 100000);
LUC_NUMBER(ki_milli, 0, 100000);
LUC_NUMBER(kd_milli, 0, 100000);
LUC_NUMBER(copy_out_threshold_permille, 0, 1000);
LUC_NUMBER(copy_out_clean_runs, 1, 1000000);
LUC_NUMBER(copy_out_limit_kib, 0, 1048576);

static struct attribute *luc_journal_attrs[] = {
	&luc_device.attr,
	&luc_policy.attr,
	&luc_copy_out.attr,
	&luc_number_delay_us.attribute.attr,
	&luc_number_max_restarts.attribute.attr,
	&luc_number_timeout_us.attribute.attr,
	&luc_number_max_hold_us.attribute.attr,
	&luc_number_set_point.attribute.attr,
	&luc_number_kp_milli.attribute.attr,
	&luc_number_ki_milli.attribute.attr,
	&luc_number_kd_milli.attribute.attr,
	&luc_number_copy_out_threshold_permille.attribute.attr,
	&luc_number_copy_out_clean_runs.attribute.attr,
	&luc_number_copy_out_limit_kib.attribute.attr,
	NULL,
};
ATTRIBUTE_GROUPS(luc_journal);

static void luc_journal_free(struct rcu_head *rcu)
{
	struct luc_journal *lj = container_of(rcu, struct luc_journal, rcu);

	free_percpu(lj->delays);
	kvfree(lj);
}

/* The last reference is gone; wrappers may still be looking through the table. */
static void luc_journal_release(struct kobject *kobj)
{
	call_rcu(&luc_of(kobj)->rcu, luc_journal_free);
}

struct kobj_type luc_journal_ktype = {
	.release = luc_journal_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = luc_journal_groups,
};

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	return sysfs_emit(page, LUC_VERSION "\n");
}

static ssize_t interface_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%d\n", LUC_INTERFACE);
}

static ssize_t layout_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	return sysfs_emit(page, luc_layout_is_checked ? "checked\n" : "unchecked\n");
}

static ssize_t kernel_show(struct kobject *kobj, struct kobj_attribute *attribute, char *page)
{
	return sysfs_emit(page, luc_is_tested ? "tested\n" : "untested\n");
}

static struct kobj_attribute luc_version = __ATTR_RO(version);
static struct kobj_attribute luc_interface = __ATTR_RO(interface);
static struct kobj_attribute luc_layout = __ATTR_RO(layout);
static struct kobj_attribute luc_kernel = __ATTR_RO(kernel);

static const struct attribute *luc_root_attrs[] = {
	&luc_version.attr, &luc_interface.attr, &luc_layout.attr, &luc_kernel.attr, NULL,
};

int luc_sysfs_init(void)
{
	int error;

	luc_root = kobject_create_and_add("luc", kernel_kobj);
	if (!luc_root)
		return -ENOMEM;
	error = sysfs_create_files(luc_root, luc_root_attrs);
	if (error)
		kobject_put(luc_root);
	return error;
}

void luc_sysfs_exit(void)
{
	kobject_put(luc_root);
}
