/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pipes and FIFOs, if they are asked for: no tracepoint sees them but that of each
 * system call. Bytes are counted as those of unix sockets, for all threads, as
 * both ends must agree.
 */
#ifndef LUC_PIPES_H
#define LUC_PIPES_H

#define LUC_FIFO_NAME 64

struct piped {
	/* The inode: the kernel uses a pipe's memory again. */
	u64 inode;
	u32 dev;
	u32 reserved;
	/* The end that reads; its peer is the one that writes. */
	struct local_end end;
	char name[LUC_FIFO_NAME];
};

/* Pipes by address; there is no event when one is freed. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct piped);
} pipes SEC(".maps");

static __always_inline void send_pipe_end(const struct piped *piped, bool writes)
{
	struct record_local *record = reserve(record_local, LOST_CONNECTION);
	u32 i;

	if (!record)
		return;
	record->kind = RECORD_LOCAL;
	record->connection = writes ? piped->end.peer : piped->end.id;
	record->peer = writes ? piped->end.id : piped->end.peer;
	record->namespace = 0;
	record->at_ns = bpf_ktime_get_ns();
	record->cookie = piped->inode;
	record->opened_ns = piped->end.opened_ns;
	record->closed_ns = writes ? piped->end.closed_ns : 0;
	record->opener = 0;
	record->opener_process = 0;
	record->side = SIDE_UNKNOWN;
	record->sequences = piped->end.sequences;
	record->family = FAMILY_PIPE;
	record->reserved = 0;
	record->local_length = piped->name[0] ? LUC_FIFO_NAME : 0;
	record->remote_length = record->local_length;
	__builtin_memset(record->local, 0, sizeof(record->local));
	__builtin_memset(record->remote, 0, sizeof(record->remote));
	for (i = 0; i < LUC_FIFO_NAME; i++) {
		record->local[i] = piped->name[i];
		record->remote[i] = piped->name[i];
	}
	submit(record);
}

static __always_inline void send_pipe(const struct piped *piped)
{
	send_pipe_end(piped, false);
	send_pipe_end(piped, true);
}

/* NULL: the file is no pipe, or its counts are not known. */
static __always_inline struct piped *piped_of(struct file *file)
{
	struct piped new = {}, *piped;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct dentry *dentry;
	u64 address;
	u32 id;

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFIFO)
		return NULL;
	address = (u64)BPF_CORE_READ(file, private_data);
	new.inode = BPF_CORE_READ(inode, i_ino);
	new.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	piped = bpf_map_lookup_elem(&pipes, &address);
	if (piped && piped->inode == new.inode && piped->dev == new.dev)
		return piped;
	if (!local_visit)
		return NULL;
	id = __sync_fetch_and_add(&last_connection, 2) + 1;
	new.end.id = id;
	new.end.peer = id + 1;
	new.end.settled = local_visit == 3;
	new.end.sequences = new.end.settled ? SEQUENCES_SEEN : SEQUENCES_COUNTED;
	new.end.opened_ns = new.end.settled ? bpf_ktime_get_ns() : 0;
	if (BPF_CORE_READ(inode, i_sb, s_magic) != PIPEFS_MAGIC) {
		dentry = BPF_CORE_READ(file, f_path.dentry);
		bpf_probe_read_kernel_str(new.name, sizeof(new.name),
					  BPF_CORE_READ(dentry, d_name.name));
	}
	if (bpf_map_update_elem(&pipes, &address, &new, piped ? BPF_ANY : BPF_NOEXIST))
		return bpf_map_lookup_elem(&pipes, &address);
	send_pipe(&new);
	return bpf_map_lookup_elem(&pipes, &address);
}

static __always_inline struct pipe_inode_info *pipe_of(struct file *file)
{
	return BPF_CORE_READ(file, private_data);
}

static __always_inline u32 buffers_of(struct pipe_inode_info *pipe)
{
	return BPF_CORE_READ(pipe, head) - BPF_CORE_READ(pipe, tail);
}

/* Returns the number of bytes in a pipe; negative if there are too many buffers to count. */
static __always_inline s64 unread_of_pipe(struct pipe_inode_info *pipe)
{
	u32 tail = BPF_CORE_READ(pipe, tail), size = BPF_CORE_READ(pipe, ring_size), i;
	u32 buffers = buffers_of(pipe);
	struct pipe_buffer *buffer;
	s64 unread = 0;
	void *first;

	if (buffers > LUC_MOST_UNREAD)
		return -1;
	first = BPF_CORE_READ(pipe, bufs);
	for (i = 0; i < LUC_MOST_UNREAD; i++) {
		if (i >= buffers)
			break;
		buffer = first +
			 (u64)((tail + i) & (size - 1)) * bpf_core_type_size(struct pipe_buffer);
		unread += BPF_CORE_READ(buffer, len);
	}
	return unread;
}

static __always_inline u32 pipe_end_number(struct file *file, const struct piped *piped)
{
	return BPF_CORE_READ(file, f_mode) & FMODE_WRITE ? piped->end.peer : piped->end.id;
}

/* A pipe that exists when recording begins. Returns the number of the end that the file is. */
static __always_inline u32 look_at_pipe(struct file *file)
{
	struct pipe_inode_info *pipe = pipe_of(file);
	struct piped *piped = piped_of(file);

	if (!piped)
		return 0;
	look_at_unread(&piped->end, unread_of_pipe(pipe),
		       buffers_of(pipe) >= BPF_CORE_READ(pipe, max_usage));
	return pipe_end_number(file, piped);
}

/* The number of the end that a file is; 0: it is no pipe. */
static __always_inline u32 pipe_end_of(struct file *file)
{
	struct piped *piped = piped_of(file);

	return piped ? pipe_end_number(file, piped) : 0;
}

/* Notes the begin of a call that may write into a pipe. */
static __always_inline int begin_pipe_call(struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct talker *talker;
	u32 class;

	if (number < 0 || number >= LUC_SYSCALLS)
		return 0;
	class = config.pipe_class[number & (LUC_SYSCALLS - 1)];
	if (class < PIPE_WRITES || !hot_of(task))
		return 0;
	talker = made_talker(task);
	if (talker)
		talker->call_ns = bpf_ktime_get_ns();
	return 0;
}

ON_CALL_ENTER(pipe_enter, begin_pipe_call)

static __always_inline void pipe_written(struct task_struct *task, struct piped *piped, u64 bytes)
{
	struct hot *hot = hot_of(task);
	struct local_end *end = &piped->end;
	struct talker *talker;
	u64 first, at_ns;

	first = __sync_fetch_and_add(&end->sent, bytes);
	if (!end->settled) {
		end->activity++;
		end->was_full = 0;
		return;
	}
	if (!hot)
		return;
	talker = talker_of(task);
	at_ns = talker && talker->call_ns ? talker->call_ns : bpf_ktime_get_ns();
	send_message(task, hot, SENT, end->peer, at_ns, first, bytes);
}

static __always_inline void pipe_read(struct task_struct *task, struct piped *piped,
				      struct pipe_inode_info *pipe, u64 bytes)
{
	struct hot *hot = hot_of(task);
	struct local_end *end = &piped->end;
	bool is_drained = !buffers_of(pipe);
	u64 first;

	first = __sync_fetch_and_add(&end->received, bytes);
	if (!end->settled)
		end->activity++;
	else if (hot)
		send_message(task, hot, RECEIVED, end->id, bpf_ktime_get_ns(), first, bytes);
	if (is_drained)
		settle_drained(end);
}

static __always_inline void pipe_ended(struct piped *piped, struct pipe_inode_info *pipe)
{
	if (piped->end.closed_ns || BPF_CORE_READ(pipe, writers))
		return;
	piped->end.closed_ns = bpf_ktime_get_ns();
	send_pipe_end(piped, true);
}

/* The end of a call on what may be pipes. */
static __always_inline int end_pipe_call(struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long number = syscall_of_registers(regs);
	struct piped *piped;
	struct file *file;
	u32 class;

	if (result < 0 || number < 0 || number >= LUC_SYSCALLS)
		return 0;
	class = config.pipe_class[number & (LUC_SYSCALLS - 1)];
	if (!class)
		return 0;
	if (class == PIPE_READS || class == PIPE_SPLICES) {
		file = file_of(task, argument(regs, 0));
		piped = file ? piped_of(file) : NULL;
		if (piped && result)
			pipe_read(task, piped, pipe_of(file), result);
		else if (piped)
			pipe_ended(piped, pipe_of(file));
	}
	if (class >= PIPE_WRITES && result) {
		file = file_of(task, argument(regs, class == PIPE_WRITES ? 0 : 2));
		piped = file ? piped_of(file) : NULL;
		if (piped)
			pipe_written(task, piped, result);
	}
	return 0;
}

ON_CALL_EXIT(pipe_exit, end_pipe_call)

/* Pipes that were seen, when recording ends. */
static long send_each_pipe(struct bpf_map *map, u64 *address, struct piped *piped, void *ctx)
{
	struct piped copy = *piped;

	send_pipe(&copy);
	return 0;
}

/* User space runs it once: an iterator over a map is not allowed everywhere. */
SEC("raw_tp")
int pipe_end(void *ctx)
{
	bpf_for_each_map_elem(&pipes, send_each_pipe, NULL, 0);
	return 0;
}

#endif /* LUC_PIPES_H */
