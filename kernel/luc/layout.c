// SPDX-License-Identifier: GPL-2.0
/*
 * Are jbd2's structures what this module was compiled with? The versions of jbd2's symbols say so
 * on kernels with CONFIG_MODVERSIONS (the loader compares them); the running kernel's type
 * information says so by itself, wherever there is any.
 */
#include <linux/btf.h>
#include <linux/journal-head.h>
#include <linux/static_call.h>

#include "compat.h"
#include "luc.h"

bool luc_layout_is_checked;

struct luc_member {
	const char *name;
	u32 offset;
};

struct luc_struct {
	const char *name;
	u32 bytes;
	const struct luc_member *members;
	size_t count;
};

/* clang-format off */
#define MEMBER(type, member) { #member, offsetof(struct type, member) }
#define STRUCT(type) { #type, sizeof(struct type), type##_members, ARRAY_SIZE(type##_members) }
/* clang-format on */

static const struct luc_member journal_s_members[] = {
	MEMBER(journal_s, j_flags),
	MEMBER(journal_s, j_state_lock),
	MEMBER(journal_s, j_barrier_count),
	MEMBER(journal_s, j_running_transaction),
	MEMBER(journal_s, j_committing_transaction),
	MEMBER(journal_s, j_wait_transaction_locked),
	MEMBER(journal_s, j_checkpoint_mutex),
	MEMBER(journal_s, j_free),
	MEMBER(journal_s, j_devname),
	MEMBER(journal_s, j_fs_dev),
	MEMBER(journal_s, j_task),
	MEMBER(journal_s, j_max_transaction_buffers),
};

static const struct luc_member transaction_s_members[] = {
	MEMBER(transaction_s, t_journal),
	MEMBER(transaction_s, t_tid),
	MEMBER(transaction_s, t_outstanding_credits),
	MEMBER(transaction_s, t_handle_count),
};

static const struct luc_member journal_head_members[] = {
	MEMBER(journal_head, b_bh),	     MEMBER(journal_head, b_state_lock),
	MEMBER(journal_head, b_frozen_data), MEMBER(journal_head, b_committed_data),
	MEMBER(journal_head, b_triggers),    MEMBER(journal_head, b_frozen_triggers),
};

static const struct luc_struct __maybe_unused luc_structs[] = {
	STRUCT(journal_s),
	STRUCT(transaction_s),
	STRUCT(journal_head),
};

#if IS_ENABLED(CONFIG_DEBUG_INFO_BTF)

typedef s32 luc_find_btf_fn(const char *name, u32 kind, struct btf **btf);
typedef const struct btf_type *luc_btf_type_fn(const struct btf *btf, u32 id);
typedef const char *luc_btf_name_fn(const struct btf *btf, u32 offset);
typedef void luc_btf_put_fn(struct btf *btf);

/* As in symbols.c. bpf_find_btf_id() is static in 6.1, and declared in no header. */
#define LUC_IS(function, type) static_assert(__same_type(&(function), (type *)0))
LUC_IS(btf_type_by_id, luc_btf_type_fn);
LUC_IS(btf_name_by_offset, luc_btf_name_fn);
LUC_IS(btf_put, luc_btf_put_fn);

static s32 luc_find_no_btf(const char *name, u32 kind, struct btf **btf)
{
	return -ENOENT;
}

static const struct btf_type *luc_no_btf_type(const struct btf *btf, u32 id)
{
	return NULL;
}

static const char *luc_no_btf_name(const struct btf *btf, u32 offset)
{
	return NULL;
}

static void luc_no_btf_put(struct btf *btf)
{
}

DEFINE_STATIC_CALL(luc_find_btf, luc_find_no_btf);
DEFINE_STATIC_CALL(luc_btf_type, luc_no_btf_type);
DEFINE_STATIC_CALL(luc_btf_name, luc_no_btf_name);
DEFINE_STATIC_CALL(luc_btf_put, luc_no_btf_put);

/* Whether the kernel has functions that find types by name, in itself and in its modules (5.16). */
static bool luc_find_btf_functions(void)
{
	void *find = luc_lookup("bpf_find_btf_id"), *type = luc_lookup("btf_type_by_id");
	void *name = luc_lookup("btf_name_by_offset"), *put = luc_lookup("btf_put");

	if (!find || !type || !name || !put)
		return false;
	static_call_update(luc_find_btf, (luc_find_btf_fn *)find);
	static_call_update(luc_btf_type, (luc_btf_type_fn *)type);
	static_call_update(luc_btf_name, (luc_btf_name_fn *)name);
	static_call_update(luc_btf_put, (luc_btf_put_fn *)put);
	return true;
}

static const struct btf_member *luc_find_member(const struct btf *btf, const struct btf_type *type,
						const char *name)
{
	const struct btf_member *member = (const struct btf_member *)(type + 1);
	u32 left = BTF_INFO_VLEN(type->info);

	for (; left; left--, member++) {
		const char *found = static_call(luc_btf_name)(btf, member->name_off);

		if (found && !strcmp(found, name))
			return member;
	}
	return NULL;
}

static bool luc_is_expected(const struct btf *btf, const struct btf_type *type,
			    const struct luc_struct *expected)
{
	size_t i;

	if (type->size != expected->bytes) {
		pr_err("luc: struct %s has %u bytes here, %u where luc.ko was compiled: build it "
		       "with this kernel's headers\n",
		       expected->name, type->size, expected->bytes);
		return false;
	}
	for (i = 0; i < expected->count; i++) {
		const struct luc_member *want = &expected->members[i];
		const struct btf_member *member = luc_find_member(btf, type, want->name);
		u32 bits = member ? member->offset : 0;

		if (member && BTF_INFO_KFLAG(type->info))
			bits = BTF_MEMBER_BIT_OFFSET(bits);
		if (!member || bits != want->offset * 8) {
			pr_err("luc: struct %s has %s elsewhere than where luc.ko was compiled: "
			       "build it with this kernel's headers\n",
			       expected->name, want->name);
			return false;
		}
	}
	return true;
}

/* 1: it is as expected; 0: it is not; -ENOENT: the kernel has no information on it. */
static int luc_check_struct(const struct luc_struct *expected)
{
	const struct btf_type *type;
	struct btf *btf;
	s32 id = static_call(luc_find_btf)(expected->name, BTF_KIND_STRUCT, &btf);
	int good = -ENOENT;

	if (id < 0)
		return -ENOENT;
	type = static_call(luc_btf_type)(btf, id);
	if (type)
		good = luc_is_expected(btf, type, expected);
	static_call(luc_btf_put)(btf);
	return good;
}

static int luc_check_structs(void)
{
	size_t i;
	int good;

	if (!luc_find_btf_functions())
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(luc_structs); i++) {
		good = luc_check_struct(&luc_structs[i]);
		if (good <= 0)
			return good;
	}
	return 1;
}

#else

static int luc_check_structs(void)
{
	return -ENOENT;
}

#endif

int luc_check_layout(void)
{
	int good = luc_check_structs();

	luc_layout_is_checked = good > 0;
	if (!good)
		return -EOPNOTSUPP;
	if (good < 0)
		pr_warn("luc: warning: this kernel has no type information (BTF) of jbd2: that its "
			"structures are those that luc.ko was compiled with is vouched for by %s "
			"only\n",
			IS_ENABLED(CONFIG_MODVERSIONS) ? "the versions of its symbols"
						       : "the kernel's version");
	return 0;
}
