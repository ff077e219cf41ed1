/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data made dirty and data written back, summed by file and thread. */
#ifndef LUC_FILE_DATA_H
#define LUC_FILE_DATA_H

enum direction {
	DIRTIED,
	WRITTEN_BY_SYNC,
	WRITTEN_BY_COMMIT,
	WRITTEN_BY_FLUSHER,
	WRITTEN_DIRECTLY,
};

DEFINE_SUMS(data_0, struct data_key, struct data_sum, 65536);
DEFINE_SUMS(data_1, struct data_key, struct data_sum, 65536);

static __always_inline void add_data(struct inode *inode, u64 bytes, u32 direction)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct data_key key = {
		.inode = inode->i_ino,
		.dev = inode->i_sb->s_dev,
		.thread = task->pid,
		.direction = direction,
	};
	struct data_sum zero = { .process = task->tgid }, *sum;
	struct thread *thread;

	if (config.summary || !device_wanted(key.dev))
		return;
	thread = current_thread(task);
	if (!thread)
		return;
	introduce(task, thread);
	zero.cgroup = thread->cgroup;
	key.slot = bpf_ktime_get_ns() / config.slot_ns;
	sum = sum_of(data, &key, &zero, LOST_MAP_DATA);
	if (sum)
		sum->bytes += bytes;
}

static __always_inline u64 folio_bytes(struct folio *folio)
{
	struct folio___typed_flags *typed = (void *)folio;
	struct folio___order_byte *old = (void *)folio;
	unsigned long flags = 0, order = 0;
	u8 byte = 0;

	if (bpf_core_field_exists(typed->flags.f))
		flags = BPF_CORE_READ(typed, flags.f);
	else if (bpf_core_field_exists(folio->flags))
		flags = BPF_CORE_READ(folio, flags);
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 1 << PAGE_SHIFT_4K;
	if (bpf_core_field_exists(old->_folio_order)) {
		bpf_core_read(&byte, sizeof(byte), &old->_folio_order);
		order = byte;
	} else if (bpf_core_field_exists(folio->_flags_1)) {
		bpf_core_read(&order, sizeof(order), &folio->_flags_1);
		order &= 0xff;
	}
	return (u64)1 << PAGE_SHIFT_4K << (order & 31);
}

/* Since Linux 5.18; before, `writeback_dirty_page`. */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(writeback_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	struct inode *inode;

	if (!mapping)
		return 0;
	inode = mapping->host;
	/* Blocks of metadata belong to the block device, and do not count. */
	if ((inode->i_mode & S_IFMT) == S_IFREG)
		add_data(inode, folio_bytes(folio), DIRTIED);
	return 0;
}

SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(writeback_dirty_page, struct page *page, struct address_space *mapping)
{
	struct inode *inode;

	if (!mapping)
		return 0;
	inode = mapping->host;
	if ((inode->i_mode & S_IFMT) == S_IFREG)
		add_data(inode, 1 << PAGE_SHIFT_4K, DIRTIED);
	return 0;
}

SEC("tp_btf/ext4_writepages_result")
int BPF_PROG(ext4_writepages_result, struct inode *inode, struct writeback_control *wbc, int result,
	     int pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 direction = WRITTEN_BY_SYNC;
	char name[LUC_COMM] = {};

	if (!inode || pages <= 0)
		return 0;
	if (task->flags & PF_KTHREAD) {
		bpf_core_read_str(name, sizeof(name), &task->comm);
		direction = name[0] == 'j' && name[1] == 'b' && name[2] == 'd' ? WRITTEN_BY_COMMIT
									       : WRITTEN_BY_FLUSHER;
	}
	add_data(inode, (u64)pages << PAGE_SHIFT_4K, direction);
	return 0;
}

/* Other file systems, when a flusher writes. */
SEC("tp_btf/writeback_single_inode")
int BPF_PROG(writeback_single_inode, struct inode *inode, struct writeback_control *wbc,
	     unsigned long wanted)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long pages = wanted - wbc->nr_to_write;

	if (pages <= 0 || inode->i_sb->s_magic == EXT4_SUPER_MAGIC ||
	    (inode->i_mode & S_IFMT) != S_IFREG)
		return 0;
	add_data(inode, (u64)pages << PAGE_SHIFT_4K,
		 task->flags & PF_KTHREAD ? WRITTEN_BY_FLUSHER : WRITTEN_BY_SYNC);
	return 0;
}

SEC("tp_btf/iomap_dio_complete")
int BPF_PROG(iomap_dio_complete, struct kiocb *iocb, int error, long result)
{
	if (iocb && result > 0 && iocb->ki_flags & IOCB_WRITE)
		add_data(iocb->ki_filp->f_inode, result, WRITTEN_DIRECTLY);
	return 0;
}

#endif /* LUC_FILE_DATA_H */
