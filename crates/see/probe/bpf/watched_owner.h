/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The watched task of the running thread, and the watched disk of a device. */
#ifndef LUC_WATCHED_OWNER_H
#define LUC_WATCHED_OWNER_H

/* In a section of its own, which user space maps. */
struct contention shared SEC(".bss.shared");

/* Number of levels above a task's cgroup that are searched for a watched one. */
#define LUC_CGROUP_LEVELS 32

/* A place among the watched tasks, and which use of it. */
struct owner {
	u32 task;
	u32 generation;
};

/* Tasks by cgroup id. Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LUC_TASKS);
	__type(key, u64);
	__type(value, u32);
} cgroups SEC(".maps");

/* Tasks by thread id. Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LUC_TASKS);
	__type(key, u32);
	__type(value, u32);
} watched_threads SEC(".maps");

/* Result for a cgroup, and the generation of its search. */
struct resolved {
	u32 task;
	u32 generation;
};

/* Results by cgroup id, so that not every request searches all cgroups above. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct resolved);
} resolved_cgroups SEC(".maps");

static __always_inline void count_unkept(u32 place)
{
	__sync_fetch_and_add(&shared.unkept[place], 1);
}

/* The innermost watched one of the cgroup and those above it. */
static __always_inline u32 task_above(int level)
{
	u64 id;
	u32 *task;
	int i;

	for (i = 0; i < LUC_CGROUP_LEVELS && i <= level; i++) {
		id = bpf_get_current_ancestor_cgroup_id(level - i);
		task = bpf_map_lookup_elem(&cgroups, &id);
		if (task)
			return *task;
	}
	return LUC_NOBODY;
}

static __always_inline u32 task_of_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	u64 id = cgroup->kn->id;
	struct resolved new, *known = bpf_map_lookup_elem(&resolved_cgroups, &id);

	if (known && known->generation == shared.generation)
		return known->task;
	/* Before it is looked for: what user space changes meanwhile makes it out of date. */
	new.generation = shared.generation;
	new.task = task_above(cgroup->level);
	bpf_map_update_elem(&resolved_cgroups, &id, &new, BPF_ANY);
	return new.task;
}

/*
 * Cuts an index off to what is there, in sight of the verifier: the compiler
 * would leave that out where it knows the index to be good.
 */
static __always_inline u64 within(u64 index, u64 count)
{
	asm volatile("" : "+r"(index));
	return index & (count - 1);
}

static __always_inline struct task_control *control_of(u32 task)
{
	return &shared.tasks[within(task, LUC_TASKS)];
}

static __always_inline struct disk_sums *disk_sums_of(u32 disk)
{
	return &shared.disks[within(disk, LUC_DISKS)];
}

static __always_inline struct owner owner_of(u32 task)
{
	struct owner owner = { .task = task };

	if (task < LUC_TASKS)
		owner.generation = control_of(task)->generation;
	else
		owner.task = LUC_NOBODY;
	return owner;
}

/* Returns whether the place still belongs to the same task. */
static __always_inline bool is_valid(struct owner *owner)
{
	return owner->task < LUC_TASKS && control_of(owner->task)->generation == owner->generation;
}

/* The watched task that the running thread is of. */
static __always_inline struct owner running_owner(struct task_struct *task)
{
	u32 thread = task->pid, *place;

	if (!shared.tasks_watched)
		return owner_of(LUC_NOBODY);
	if (shared.threads_watched) {
		place = bpf_map_lookup_elem(&watched_threads, &thread);
		if (place)
			return owner_of(*place);
	}
	return owner_of(task_of_cgroup(task));
}

static __always_inline u32 dev_of(struct gendisk *disk)
{
	return disk ? disk->major << 20 | disk->first_minor : 0;
}

/* Returns the watched disk that a device is or is above; LUC_DISKS for none. */
static __always_inline u32 disk_of(u32 dev)
{
	u32 i, count = shared.dev_count;

	for (i = 0; i < LUC_DEVS && i < count; i++)
		if (shared.devs[i].dev == dev)
			return shared.devs[i].disk & (LUC_DISKS - 1);
	return LUC_DISKS;
}

static __always_inline struct task_sums *sums_of(struct owner *owner, u32 disk)
{
	return &shared.sums[within(disk, LUC_DISKS)][within(owner->task, LUC_TASKS)];
}

#endif /* LUC_WATCHED_OWNER_H */
