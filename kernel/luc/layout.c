// SPDX-License-Identifier: GPL-2.0
/*
 * Are jbd2's structures and functions what this module was compiled with? The versions of jbd2's
 * symbols say so on kernels with CONFIG_MODVERSIONS (the loader compares them); the running
 * kernel's type information says so by itself, wherever there is any.
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

/* An argument or a result: "*" a pointer, "*NAME" one to a structure, "4" a number of so many
 * bytes. */
typedef const char *luc_kind;

struct luc_function {
	const char *name;
	luc_kind result;
	luc_kind arguments[4];
};

/* clang-format off */
static const struct luc_function __maybe_unused luc_functions[] = {
	{ "jbd2_journal_commit_transaction", NULL, { "*journal_s" } },
	{ "jbd2_journal_write_metadata_buffer", "4", { "*transaction_s", "*journal_head", "*", "8" } },
	{ "jbd2_journal_get_write_access", "4", { "*jbd2_journal_handle", "*buffer_head" } },
	{ "jbd2_complete_transaction", "4", { "*journal_s", "4" } },
	{ "jbd2_journal_force_commit", "4", { "*journal_s" } },
	{ "jbd2_log_wait_commit", "4", { "*journal_s", "4" } },
	{ "jbd2_journal_load", "4", { "*journal_s" } },
	{ "jbd2_journal_destroy", "4", { "*journal_s" } },
};
/* clang-format on */

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

static bool luc_is_name_or_qualifier(const struct btf_type *type)
{
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return true;
	default:
		return false;
	}
}

/* The type that id names, without typedefs and qualifiers; NULL for void. */
static const struct btf_type *luc_resolve(const struct btf *btf, u32 id)
{
	const struct btf_type *type = static_call(luc_btf_type)(btf, id);

	while (type && luc_is_name_or_qualifier(type))
		type = static_call(luc_btf_type)(btf, type->type);
	return type && BTF_INFO_KIND(type->info) != BTF_KIND_UNKN ? type : NULL;
}

static bool luc_is_kind(const struct btf *btf, u32 id, luc_kind want)
{
	const struct btf_type *type = luc_resolve(btf, id);
	const char *name;

	if (!want || !type)
		return !want && !type;
	if (*want != '*')
		return BTF_INFO_KIND(type->info) == BTF_KIND_INT &&
		       type->size == (u32)(*want - '0');
	if (BTF_INFO_KIND(type->info) != BTF_KIND_PTR)
		return false;
	if (!want[1])
		return true;
	type = luc_resolve(btf, type->type);
	name = type ? static_call(luc_btf_name)(btf, type->name_off) : NULL;
	return name && !strcmp(name, want + 1);
}

static bool luc_is_signature(const struct btf *btf, const struct btf_type *type,
			     const struct luc_function *want)
{
	const struct btf_param *argument = (const struct btf_param *)(type + 1);
	u32 count = BTF_INFO_VLEN(type->info), i;

	if (!luc_is_kind(btf, type->type, want->result))
		return false;
	for (i = 0; i < ARRAY_SIZE(want->arguments) && want->arguments[i]; i++)
		if (i >= count || !luc_is_kind(btf, argument[i].type, want->arguments[i]))
			return false;
	return i == count;
}

/* A function that the kernel has no information on is vouched for by the compiler. */
static bool luc_check_function(const struct luc_function *want)
{
	const struct btf_type *type;
	struct btf *btf;
	s32 id = static_call(luc_find_btf)(want->name, BTF_KIND_FUNC, &btf);
	bool good = true;

	if (id < 0)
		return true;
	type = static_call(luc_btf_type)(btf, id);
	type = type ? static_call(luc_btf_type)(btf, type->type) : NULL;
	if (type)
		good = luc_is_signature(btf, type, want);
	static_call(luc_btf_put)(btf);
	if (!good)
		pr_err("luc: function %s has other arguments here: luc.ko does not know this jbd2 "
		       "and will not touch it\n",
		       want->name);
	return good;
}

static int luc_check_types(void)
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
	for (i = 0; i < ARRAY_SIZE(luc_functions); i++)
		if (!luc_check_function(&luc_functions[i]))
			return 0;
	return 1;
}

#else

static int luc_check_types(void)
{
	return -ENOENT;
}

#endif

int luc_check_layout(void)
{
	int good = luc_check_types();

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
