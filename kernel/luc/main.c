// SPDX-License-Identifier: GPL-2.0
/* Loading and unloading. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/utsname.h>

#include "compat.h"
#include "luc.h"

struct luc_settings luc_defaults = {
	.policy = LUC_POLICY_OFF,
	.copy_out = LUC_COPY_OUT_OFF,
	.delay_us = 1000,
	.max_restarts = 64,
	.timeout_us = 1000,
	.max_hold_us = 20000,
	.set_point = 0,
	.kp_milli = 800,
	.ki_milli = 250,
	.kd_milli = 250,
	.copy_out_threshold_permille = 50,
	.copy_out_clean_runs = 4,
	.copy_out_limit_kib = 16384,
};

static char *policy = "off";
module_param(policy, charp, 0444);
MODULE_PARM_DESC(policy,
		 "how journals batch commits unless set otherwise: off, delay, pid or auto");

static char *copy_out = "off";
module_param(copy_out, charp, 0444);
MODULE_PARM_DESC(copy_out, "whether journals write metadata from copies unless set otherwise: off, "
			   "on, heuristic or auto");

unsigned int luc_stretch_permille = LUC_UNSTRETCHED;
module_param_named(stretch_permille, luc_stretch_permille, uint, 0444);
MODULE_PARM_DESC(
	stretch_permille,
	"how much longer all times of the module last, in thousandths: for guests in virtual "
	"time whose other times are stretched");

bool luc_is_tested;

static bool __init luc_is_in_range(unsigned int version)
{
	return version >= LUC_FIRST_TESTED && version <= LUC_LAST_TESTED;
}

/* The version that release names, without what it has beyond KERNEL_VERSION; 0 if it names none. */
static unsigned int __init luc_version_of(const char *release)
{
	unsigned int major = 0, minor = 0, patch = 0;

	if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) < 2 || major > 255 || minor > 255)
		return 0;
	return KERNEL_VERSION(major, minor, patch);
}

/*
 * Looks at both the kernel that this was compiled for and the one that runs, which may be another:
 * with CONFIG_MODVERSIONS the loader does not compare their releases.
 */
static int __init luc_check_kernel(void)
{
	const char *release = init_utsname()->release;
	const struct luc_bad_kernels *bad;
	unsigned int version = luc_version_of(release);

	for (bad = luc_known_bad; bad->why; bad++) {
		if ((version < bad->first || version > bad->last) &&
		    (LINUX_VERSION_CODE < bad->first || LINUX_VERSION_CODE > bad->last))
			continue;
		pr_err("luc: kernel %s is known not to stand luc.ko (%s): use another kernel\n",
		       release, bad->why);
		return -EOPNOTSUPP;
	}
	luc_is_tested = luc_is_in_range(LINUX_VERSION_CODE) && luc_is_in_range(version);
	if (!luc_is_tested)
		pr_warn("luc: warning: luc.ko has been tested on kernels %u.%u to %u.%u, not on "
			"%s; "
			"what it needs of it was compared\n",
			LUC_FIRST_TESTED >> 16, LUC_FIRST_TESTED >> 8 & 255, LUC_LAST_TESTED >> 16,
			LUC_LAST_TESTED >> 8 & 255, release);
	return 0;
}

static int __init luc_parse_parameters(void)
{
	int error = luc_parse_policy(policy, &luc_defaults.policy);

	if (error) {
		pr_err("luc: policy=%s: must be off, delay, pid or auto\n", policy);
		return error;
	}
	error = luc_parse_copy_out(copy_out, &luc_defaults.copy_out);
	if (error) {
		pr_err("luc: copy_out=%s: must be off, on, heuristic or auto\n", copy_out);
		return error;
	}
	if (luc_stretch_permille < LUC_LEAST_STRETCH || luc_stretch_permille > LUC_MOST_STRETCH) {
		pr_err("luc: stretch_permille=%u: must be a whole number from %d to %d\n",
		       luc_stretch_permille, LUC_LEAST_STRETCH, LUC_MOST_STRETCH);
		return -EINVAL;
	}
	return 0;
}

static int __init luc_init(void)
{
	int error = luc_parse_parameters();

	if (error)
		return error;
	error = luc_check_kernel();
	if (error)
		return error;
	error = luc_find_symbols();
	if (error)
		return error;
	error = luc_check_layout();
	if (error)
		return error;
	error = luc_sysfs_init();
	if (error)
		return error;
	error = luc_hooks_install();
	if (error) {
		/* A mount may have come in between. */
		luc_journals_forget_all();
		luc_sysfs_exit();
		return error;
	}
	luc_journals_attach();
	pr_info("luc: version " LUC_VERSION " loaded\n");
	return 0;
}

static void __exit luc_exit(void)
{
	luc_hooks_remove();
	luc_journals_forget_all();
	luc_sysfs_exit();
	pr_info("luc: unloaded\n");
}

module_init(luc_init);
module_exit(luc_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Brings fsyncs into common journal commits and journals metadata from copies");
MODULE_VERSION(LUC_VERSION);
