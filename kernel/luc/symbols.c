// SPDX-License-Identifier: GPL-2.0
/*
 * What luc.ko needs of jbd2 beyond its exports: addresses of functions that it wraps or calls.
 *
 * Originals are reached by static calls, which are patched into direct ones: an indirect call would
 * end in a fault on a kernel with Indirect Branch Tracking, which seals functions that it only
 * calls directly.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/slab.h>
#include <linux/static_call.h>

#include "compat.h"
#include "luc.h"

struct luc_symbols luc_symbols;

typedef unsigned long luc_lookup_fn(const char *name);
typedef void luc_commit_fn(journal_t *journal);
typedef int luc_write_metadata_fn(transaction_t *transaction, struct journal_head *jh,
				  struct buffer_head **bh_out, sector_t block);
typedef void *luc_alloc_fn(size_t size, gfp_t flags);
typedef void luc_free_fn(void *ptr, size_t size);

/* Addresses are found by name; that the functions are of these types, the compiler must say. */
#define LUC_IS(function, type) static_assert(__same_type(&(function), (type *)0))
LUC_IS(kallsyms_lookup_name, luc_lookup_fn);
LUC_IS(jbd2_journal_commit_transaction, luc_commit_fn);
LUC_IS(jbd2_journal_write_metadata_buffer, luc_write_metadata_fn);
#if LUC_JBD2_HAS_ALLOC
LUC_IS(jbd2_alloc, luc_alloc_fn);
LUC_IS(jbd2_free, luc_free_fn);
#endif

static luc_lookup_fn luc_no_lookup;
static unsigned long luc_no_lookup(const char *name)
{
	return 0;
}

static void luc_no_commit(journal_t *journal)
{
}

static int luc_no_write_metadata(transaction_t *transaction, struct journal_head *jh,
				 struct buffer_head **bh_out, sector_t block)
{
	return -EIO;
}

static void *luc_no_alloc(size_t size, gfp_t flags)
{
	return NULL;
}

static void luc_no_free(void *ptr, size_t size)
{
}

DEFINE_STATIC_CALL(luc_kallsyms, luc_no_lookup);
DEFINE_STATIC_CALL(luc_commit, luc_no_commit);
DEFINE_STATIC_CALL(luc_write_metadata, luc_no_write_metadata);
DEFINE_STATIC_CALL(luc_alloc, luc_no_alloc);
DEFINE_STATIC_CALL(luc_free, luc_no_free);

/* kallsyms_lookup_name() is not exported (5.7, 0bd476e6c671), but a kprobe can be set on it. */
static int luc_find_lookup(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long address;
	int error = register_kprobe(&probe);

	if (error) {
		pr_err("luc: cannot set a kprobe on kallsyms_lookup_name (%d): this kernel needs "
		       "CONFIG_KPROBES and CONFIG_KALLSYMS\n",
		       error);
		return -EOPNOTSUPP;
	}
	/* The probe may sit behind an ENDBR (5.18, "x86/ibt,kprobes: Cure sym+0 equals fentry
	 * woes"). */
	address = (unsigned long)probe.addr - probe.offset;
	unregister_kprobe(&probe);
	static_call_update(luc_kallsyms, (luc_lookup_fn *)address);
	return 0;
}

/* The address of kernel symbol name; NULL if there is none. */
void *luc_lookup(const char *name)
{
	return (void *)static_call(luc_kallsyms)(name);
}

static void *luc_require(const char *name)
{
	void *address = luc_lookup(name);

	if (!address)
		pr_err("luc: this kernel has no function %s: luc.ko does not know its jbd2 and "
		       "will not touch it\n",
		       name);
	return address;
}

/* Frozen copies are freed by jbd2, so they must come from where it takes its own. */
static int luc_find_allocator(void)
{
	void *alloc, *free;

	if (!LUC_JBD2_HAS_ALLOC) {
		if (!luc_lookup("jbd2_free"))
			return 0;
		pr_err("luc: jbd2 frees its copies otherwise here than where luc.ko was compiled: "
		       "build it with this kernel's headers\n");
		return -EOPNOTSUPP;
	}
	alloc = luc_require("jbd2_alloc");
	free = luc_require("jbd2_free");
	if (!alloc || !free)
		return -EOPNOTSUPP;
	static_call_update(luc_alloc, (luc_alloc_fn *)alloc);
	static_call_update(luc_free, (luc_free_fn *)free);
	return 0;
}

int luc_find_symbols(void)
{
	int error = luc_find_lookup();

	if (error)
		return error;
	luc_symbols.commit_transaction = luc_require("jbd2_journal_commit_transaction");
	luc_symbols.write_metadata_buffer = luc_require("jbd2_journal_write_metadata_buffer");
	luc_symbols.kjournald2 = luc_require("kjournald2");
	if (!luc_symbols.commit_transaction || !luc_symbols.write_metadata_buffer ||
	    !luc_symbols.kjournald2)
		return -EOPNOTSUPP;
	static_call_update(luc_commit, (luc_commit_fn *)luc_symbols.commit_transaction);
	static_call_update(luc_write_metadata,
			   (luc_write_metadata_fn *)luc_symbols.write_metadata_buffer);
	return luc_find_allocator();
}

void luc_original_commit(journal_t *journal)
{
	static_call(luc_commit)(journal);
}

int luc_original_write_metadata(transaction_t *transaction, struct journal_head *jh,
				struct buffer_head **bh_out, sector_t block)
{
	return static_call(luc_write_metadata)(transaction, jh, bh_out, block);
}

/* Memory for a frozen copy. */
void *luc_jbd2_alloc(size_t size, gfp_t flags)
{
	return LUC_JBD2_HAS_ALLOC ? static_call(luc_alloc)(size, flags) : kmalloc(size, flags);
}

void luc_jbd2_free(void *ptr, size_t size)
{
	if (LUC_JBD2_HAS_ALLOC)
		static_call(luc_free)(ptr, size);
	else
		kfree(ptr);
}
