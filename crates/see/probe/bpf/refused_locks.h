/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * File locks that somebody waits for. Who sleeps until a lock is free is shown by
 * /proc/locks; who only tries to take it, again and again, as SQLite does, is not:
 * so refusals are remembered here. Until somebody is refused a lock for the first
 * time, calls that take one cost next to nothing.
 */
#ifndef LUC_REFUSED_LOCKS_H
#define LUC_REFUSED_LOCKS_H

/* Refusals are in a row if there is no longer time in between. */
#define LOCKS_APART_NS 1000000000ULL
/* Number of places in which a lock may be. */
#define LOCKS_TRIES 4

static __always_inline void notify_lock(void)
{
	struct owner nobody = owner_of(LUC_NOBODY);

	if (shared.notify_lock && __sync_val_compare_and_swap(&shared.notify_lock, 1, 0))
		send(&nobody, 0, NOTIFY_LOCK, bpf_ktime_get_ns());
}

static __always_inline bool has_same_bytes(struct refused_lock *one, struct refused_lock *other)
{
	return one->inode == other->inode && one->first_byte == other->first_byte &&
	       one->dev == other->dev && one->is_flock == other->is_flock;
}

static __always_inline bool is_same_lock(struct refused_lock *one, struct refused_lock *other)
{
	return one->cgroup == other->cgroup && has_same_bytes(one, other);
}

/* Returns the first place of a lock: the same for all cgroups. */
static __always_inline u32 first_place_of(struct refused_lock *lock)
{
	return (u32)lock->inode * 17 + (u32)lock->first_byte;
}

/* Returns the lock's place, or that of the lock with the oldest refusal. */
static __always_inline struct refused_lock *place_of_lock(struct refused_lock *lock)
{
	struct refused_lock *place, *oldest = NULL;
	u32 first = first_place_of(lock);
	int i;

	for (i = 0; i < LOCKS_TRIES; i++) {
		place = &shared.refused[within(first + i, LUC_LOCKS)];
		if (is_same_lock(place, lock))
			return place;
		if (!oldest || place->last_ns < oldest->last_ns)
			oldest = place;
	}
	return oldest;
}

static __always_inline void note_refusal(struct refused_lock *lock)
{
	struct refused_lock *place = place_of_lock(lock);
	u64 now = bpf_ktime_get_ns();

	lock->process = bpf_get_current_pid_tgid() >> 32;
	lock->last_ns = now;
	if (!is_same_lock(place, lock)) {
		lock->refusals = 1;
		*place = *lock;
		return;
	}
	if (now - place->last_ns > LOCKS_APART_NS)
		place->refusals = 0;
	place->refusals++;
	place->process = lock->process;
	place->last_byte = lock->last_byte;
	place->last_ns = now;
	if (place->refusals > 1) {
		__sync_fetch_and_add(&shared.lock_refusals, 1);
		notify_lock();
	}
}

static __always_inline void note_taking(struct refused_lock *lock)
{
	u32 first = first_place_of(lock);
	struct refused_lock *place;
	int i;

	for (i = 0; i < LOCKS_TRIES; i++) {
		place = &shared.refused[within(first + i, LUC_LOCKS)];
		if (!place->refusals || !has_same_bytes(place, lock))
			continue;
		if (place->cgroup == lock->cgroup) {
			place->refusals = 0;
			place->takings++;
		} else {
			place->takings_by_others++;
		}
	}
}

static __always_inline bool is_unlock(struct file_lock *lock)
{
	struct file_lock___core *core = (void *)lock;
	struct file_lock___flat *flat = (void *)lock;

	if (bpf_core_field_exists(core->c))
		return core->c.flc_type == F_UNLCK;
	return flat->fl_type == F_UNLCK;
}

/* `result` is that of the call before it sleeps, if it does. */
static __always_inline void note_lock(struct inode *inode, struct file_lock *lock, int result,
				      bool is_flock)
{
	struct refused_lock wanted = {};

	if (result == FILE_LOCK_DEFERRED) {
		__sync_fetch_and_add(&shared.lock_waits, 1);
		notify_lock();
		return;
	}
	/* A lock that was never refused needs no notice when it is taken. */
	if (result != -EAGAIN && (result || !shared.lock_refused))
		return;
	/* Tracepoints may be given nothing, as far as the verifier knows. */
	if (!lock)
		return;
	wanted.cgroup = bpf_get_current_cgroup_id();
	wanted.inode = inode->i_ino;
	wanted.dev = inode->i_sb->s_dev;
	wanted.first_byte = lock->fl_start;
	wanted.last_byte = lock->fl_end;
	wanted.is_flock = is_flock;
	if (result) {
		shared.lock_refused = 1;
		note_refusal(&wanted);
	} else if (!is_unlock(lock)) {
		note_taking(&wanted);
	}
}

SEC("tp_btf/posix_lock_inode")
int BPF_PROG(posix_lock_inode, struct inode *inode, struct file_lock *lock, int result)
{
	note_lock(inode, lock, result, false);
	return 0;
}

SEC("tp_btf/flock_lock_inode")
int BPF_PROG(flock_lock_inode, struct inode *inode, struct file_lock *lock, int result)
{
	note_lock(inode, lock, result, true);
	return 0;
}

SEC("tp_btf/break_lease_block")
int BPF_PROG(break_lease_block)
{
	__sync_fetch_and_add(&shared.lock_waits, 1);
	notify_lock();
	return 0;
}

#endif /* LUC_REFUSED_LOCKS_H */
