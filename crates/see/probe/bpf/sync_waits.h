/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of fsync and the like, also for O_SYNC writes: what they wait for, a
 * journal's commit, is submitted by others, so the call itself is outstanding.
 * sync_file_range only waits for the task's own requests; sync and syncfs are
 * not looked at.
 */
#ifndef LUC_SYNC_WAITS_H
#define LUC_SYNC_WAITS_H

struct sync_state {
	struct owner owner;
	u32 disk;
	u32 reserved;
};

/* Waits by thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct sync_state);
} syncs SEC(".maps");

static __always_inline void enter_sync(struct inode *inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct block_device *device = inode->i_sb->s_bdev;
	struct sync_state new = {};
	u32 thread = task->pid;
	long error;

	if (!device)
		return;
	new.disk = disk_of(dev_of(device->bd_disk));
	if (new.disk >= LUC_DISKS)
		return;
	new.owner = running_owner(task);
	if (!is_valid(&new.owner))
		return;
	/* Already in one: a file system on a file system. */
	if (bpf_map_lookup_elem(&syncs, &thread))
		return;
	error = bpf_map_update_elem(&syncs, &thread, &new, BPF_NOEXIST);
	if (error)
		count_unkept(UNKEPT_SYNC);
	else
		add_outstanding(&new.owner, new.disk, bpf_ktime_get_ns());
}

static __always_inline void leave_sync(void)
{
	u32 thread = bpf_get_current_pid_tgid();
	struct sync_state state, *known = bpf_map_lookup_elem(&syncs, &thread);

	if (!known)
		return;
	state = *known;
	if (bpf_map_delete_elem(&syncs, &thread))
		return;
	if (is_valid(&state.owner))
		end_outstanding(&state.owner, state.disk, bpf_ktime_get_ns());
}

/* On all file systems, where the kernel has the means and allows them. */
SEC("fentry/vfs_fsync_range")
int BPF_PROG(fsync_enter, struct file *file)
{
	enter_sync(file->f_inode);
	return 0;
}

SEC("fexit/vfs_fsync_range")
int BPF_PROG(fsync_exit)
{
	leave_sync();
	return 0;
}

SEC("fexit/vfs_fsync_range")
int BPF_PROG(fsync_exit_2)
{
	leave_sync();
	return 0;
}

/* Elsewhere: ext4's only. Its tracepoints may be a module's, hence the comparison. */
SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(ext4_sync_file_enter, struct file *file)
{
	if (file)
		enter_sync(file->f_inode);
	return 0;
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(ext4_sync_file_exit)
{
	leave_sync();
	return 0;
}

#endif /* LUC_SYNC_WAITS_H */
