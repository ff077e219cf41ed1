/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Identities of threads, and the choice of recorded ones. */
#ifndef LUC_THREAD_IDENTITY_H
#define LUC_THREAD_IDENTITY_H

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread *above = thread_of(parent), *thread;

	thread = made_for_task(&threads, child);
	if (!thread) {
		count_lost(LOST_MAP_THREADS);
		return 0;
	}
	thread->in_tree = above && above->in_tree;
	/* The command that the recorder starts is a child of its own. */
	if (parent->tgid == config.own_process && child->tgid != config.own_process)
		thread->in_tree = 1;
	decide(child, thread);
	make_counted(child, thread);
	if (thread->tracked)
		send_task(child, thread, TASK_SEEN, parent);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, int old_thread)
{
	struct thread *thread = current_thread(task);
	u32 index = old_thread & config.hot_mask;
	struct hot *place = bpf_map_lookup_elem(&hot_threads, &index);

	if (!thread)
		return 0;
	/* A thread that was not its process' first is that now, under that one's number. */
	if (old_thread != task->pid) {
		if (place && place->thread == old_thread)
			place->thread = 0;
		untrack(task, thread);
	}
	decide(task, thread);
	make_counted(task, thread);
	if (thread->tracked || thread->seen)
		send_task(task, thread, TASK_EXEC, NULL);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	struct thread *thread = thread_of(task);
	struct hot *hot;

	if (!thread)
		return 0;
	hot = hot_of(task);
	if (hot)
		flush_brief(task, hot, bpf_ktime_get_ns());
	count_last(task);
	if (thread->tracked || thread->seen)
		send_task(task, thread, TASK_EXIT, NULL);
	untrack(task, thread);
	thread->exited = 1;
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(cgroup_attach_task, struct cgroup *to, const char *path, struct task_struct *task,
	     bool whole_group)
{
	struct thread *thread = thread_of(task);

	/* The task may not be there yet; its next look decides by where it is then. */
	if (thread && !(task->flags & PF_KTHREAD)) {
		decide(task, thread);
		set_cgroup(task, thread, to->kn->id);
		make_counted(task, thread);
	}
	return 0;
}

/*
 * Read before recording: gives each thread that exists its state. It is read
 * again while there was no memory for some of them.
 */
SEC("iter/task")
int begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *thread;
	u32 process;

	if (!task)
		return 0;
	thread = made_for_task(&threads, task);
	if (!thread) {
		without_state++;
		return 0;
	}
	process = task->tgid;
	if (bpf_map_lookup_elem(&roots, &process))
		thread->in_tree = 1;
	decide(task, thread);
	make_counted(task, thread);
	if (thread->tracked)
		introduce(task, thread);
	return 0;
}

/* Read once after recording: what is still held of each thread. */
SEC("iter/task")
int end(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *thread;
	struct hot *hot;

	if (!task)
		return 0;
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!thread || thread->exited || !(thread->tracked || thread->seen))
		return 0;
	hot = hot_of(task);
	if (hot)
		flush_brief(task, hot, bpf_ktime_get_ns());
	send_last_counts(task);
	send_task(task, thread, TASK_SEEN, NULL);
	return 0;
}

#endif /* LUC_THREAD_IDENTITY_H */
