/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Owner of the data that a flusher writes: the task that dirtied the inode last. */
#ifndef LUC_WRITEBACK_H
#define LUC_WRITEBACK_H

/* The last task that dirtied an inode. Only watched tasks are here. */
struct writer {
	struct owner owner;
	/* The address may since be another inode's. */
	u64 number;
};

/* Writers by the inode's address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct writer);
} writers SEC(".maps");

/* Owner of the inode that a flusher is writing, by the flusher's thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct owner);
} flushers SEC(".maps");

/* The inode that was dirtied last on this processor: usually the next one, too. */
struct dirtied {
	u64 inode;
	u32 thread;
	u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct dirtied);
} dirtied_last SEC(".maps");

static __always_inline void note_writer(struct inode *inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)inode;
	struct writer new = {}, *known;
	struct dirtied *last;
	u32 zero = 0;

	if (!shared.tasks_watched || (inode->i_mode & S_IFMT) != S_IFREG)
		return;
	last = bpf_map_lookup_elem(&dirtied_last, &zero);
	if (!last)
		return;
	if (last->inode == key && last->thread == task->pid &&
	    last->generation == shared.generation)
		return;
	last->inode = key;
	last->thread = task->pid;
	last->generation = shared.generation;
	new.owner = running_owner(task);
	new.number = inode->i_ino;
	known = bpf_map_lookup_elem(&writers, &key);
	if (new.owner.task == LUC_NOBODY) {
		if (known)
			bpf_map_delete_elem(&writers, &key);
	} else if (!known) {
		if (bpf_map_update_elem(&writers, &key, &new, BPF_ANY))
			count_unkept(UNKEPT_WRITER);
	} else {
		*known = new;
	}
}

/* Since Linux 5.18; before, `writeback_dirty_page`. */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(writeback_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	if (mapping)
		note_writer(mapping->host);
	return 0;
}

SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(writeback_dirty_page, struct page *page, struct address_space *mapping)
{
	if (mapping)
		note_writer(mapping->host);
	return 0;
}

SEC("tp_btf/writeback_single_inode_start")
int BPF_PROG(writeback_single_inode_start, struct inode *inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)inode;
	u32 flusher = task->pid;
	struct writer *writer;
	struct owner owner;

	/* A thread that writes by itself does so for itself. */
	if (!(task->flags & PF_KTHREAD))
		return 0;
	writer = bpf_map_lookup_elem(&writers, &key);
	if (!writer || writer->number != inode->i_ino || !is_valid(&writer->owner))
		return 0;
	owner = writer->owner;
	bpf_map_update_elem(&flushers, &flusher, &owner, BPF_ANY);
	return 0;
}

SEC("tp_btf/writeback_single_inode")
int BPF_PROG(writeback_single_inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 flusher = task->pid;

	if (task->flags & PF_KTHREAD)
		bpf_map_delete_elem(&flushers, &flusher);
	return 0;
}

/* Returns the watched task for which the running thread submits. */
static __always_inline struct owner submitting_owner(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 thread = task->pid;
	struct owner *owner;

	if (task->flags & PF_KTHREAD) {
		owner = bpf_map_lookup_elem(&flushers, &thread);
		if (owner)
			return *owner;
	}
	return running_owner(task);
}

#endif /* LUC_WRITEBACK_H */
