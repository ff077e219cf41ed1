/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls: their numbers and arguments, and the files of their descriptors. */
#ifndef LUC_SYSTEM_CALLS_H
#define LUC_SYSTEM_CALLS_H

static __always_inline long syscall_of_registers(struct pt_regs *regs)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___aarch64 *arm64 = (void *)regs;

	if (bpf_core_field_exists(x86->orig_ax))
		return x86->orig_ax;
	if (bpf_core_field_exists(arm64->syscallno))
		return arm64->syscallno;
	return -1;
}

static __always_inline u64 argument(struct pt_regs *regs, int index)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___aarch64 *arm64 = (void *)regs;

	if (bpf_core_field_exists(x86->orig_ax)) {
		switch (index) {
		case 0:
			return x86->di;
		case 1:
			return x86->si;
		case 2:
			return x86->dx;
		default:
			return x86->r10;
		}
	}
	if (bpf_core_field_exists(arm64->syscallno)) {
		switch (index) {
		case 0:
			return arm64->orig_x0;
		case 1:
			return arm64->regs[1];
		case 2:
			return arm64->regs[2];
		default:
			return arm64->regs[3];
		}
	}
	return 0;
}

static __always_inline struct file *file_of(struct task_struct *task, u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	return file;
}

static __always_inline struct inode *inode_of(struct task_struct *task, u32 fd)
{
	struct file *file = file_of(task, fd);

	return file ? BPF_CORE_READ(file, f_inode) : NULL;
}

#endif
