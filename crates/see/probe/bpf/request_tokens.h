/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names that requests carry in their bytes: the trace id of a W3C `traceparent`
 * header, else an `X-Request-Id`, of HTTP/1 in the clear. Only if asked for, since
 * the bytes are those of users: a hash of the name leaves the kernel, nothing else.
 *
 * The first bytes of a send or a receive are looked at where the thread has them.
 */
#ifndef LUC_REQUEST_TOKENS_H
#define LUC_REQUEST_TOKENS_H

/* Number of bytes that are searched: a power of two. */
#define TOKEN_BYTES 512
#define TRACE_ID 32
/* The version and a dash before the id. */
#define TRACE_ID_AT 3
#define LONGEST_ID 64
#define LONGEST_HEADER 16

enum token_state {
	IN_METHOD,
	IN_LINE,
	AT_HEADER,
	IN_TRACEPARENT,
	IN_REQUEST_ID,
	TOKEN_DONE,
};

struct token_scan {
	char bytes[TOKEN_BYTES];
	u64 trace_id;
	u64 request_id;
	u64 hash;
	u32 length;
	u32 state;
	/* Number of bytes of a header's name or value that were seen. */
	u32 at;
	/* Whether this header may still be one of these names. */
	u32 is_traceparent;
	u32 is_request_id;
	/* A program that was preempted is in the middle of it. */
	u32 busy;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct token_scan);
} token_scans SEC(".maps");

const char traceparent[LONGEST_HEADER] SEC(".rodata.tokens") = "traceparent:";
const char request_id[LONGEST_HEADER] SEC(".rodata.tokens") = "x-request-id:";

/* FNV-1a. */
static __always_inline u64 token_hash(u64 hash, char byte)
{
	return (hash ^ (u8)byte) * 0x100000001b3;
}

static __always_inline void begin_value(struct token_scan *scan, u32 state)
{
	scan->state = state;
	scan->at = 0;
	scan->hash = 0xcbf29ce484222325;
}

static __always_inline void end_line(struct token_scan *scan)
{
	/* An id that is cut off is another one. */
	if (scan->state == IN_REQUEST_ID && scan->at > 0 && scan->at <= LONGEST_ID)
		scan->request_id = scan->hash;
	/* An empty line ends the headers. */
	if (scan->state == AT_HEADER && scan->at == 0) {
		scan->state = TOKEN_DONE;
		return;
	}
	scan->state = AT_HEADER;
	scan->at = 0;
	scan->is_traceparent = 1;
	scan->is_request_id = 1;
}

static __always_inline void look_at_header(struct token_scan *scan, char byte)
{
	u32 at = scan->at & (LONGEST_HEADER - 1);
	char lower = byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;

	scan->is_traceparent &= lower == traceparent[at];
	scan->is_request_id &= lower == request_id[at];
	scan->at = at + 1;
	if (scan->is_traceparent && at + 1 == sizeof("traceparent:") - 1)
		begin_value(scan, IN_TRACEPARENT);
	else if (scan->is_request_id && at + 1 == sizeof("x-request-id:") - 1)
		begin_value(scan, IN_REQUEST_ID);
	else if (!scan->is_traceparent && !scan->is_request_id)
		scan->state = IN_LINE;
}

static __always_inline void look_at_value(struct token_scan *scan, char byte)
{
	if (byte == ' ' && scan->at == 0)
		return;
	scan->at++;
	if (scan->state == IN_REQUEST_ID) {
		scan->hash = token_hash(scan->hash, byte);
		return;
	}
	if (scan->at <= TRACE_ID_AT)
		return;
	if (scan->at <= TRACE_ID_AT + TRACE_ID)
		scan->hash = token_hash(scan->hash, byte);
	if (scan->at == TRACE_ID_AT + TRACE_ID) {
		scan->trace_id = scan->hash;
		scan->state = TOKEN_DONE;
	}
}

/* bpf_loop takes a pointer to the stack only. */
struct token_place {
	struct token_scan *scan;
};

static long look_at_byte(u32 index, struct token_place *place)
{
	struct token_scan *scan = place->scan;
	char byte = scan->bytes[index & (TOKEN_BYTES - 1)];

	if (index >= scan->length)
		return 1;
	/* A method is of capitals; an answer begins with `HTTP/`. */
	if (scan->state == IN_METHOD) {
		if (byte == ' ' && index > 0)
			scan->state = IN_LINE;
		else if (byte < 'A' || byte > 'Z')
			return 1;
		return 0;
	}
	if (byte == '\r')
		return 0;
	if (byte == '\n')
		end_line(scan);
	else if (scan->state == AT_HEADER)
		look_at_header(scan, byte);
	else if (scan->state != IN_LINE)
		look_at_value(scan, byte);
	return scan->state == TOKEN_DONE;
}

/* The name in these bytes of the current thread; 0: there is none. */
static __noinline u64 token_in(u64 address, u64 bytes)
{
	u32 zero = 0;
	struct token_scan *scan = bpf_map_lookup_elem(&token_scans, &zero);
	struct token_place place = { .scan = scan };
	u32 length = bytes < TOKEN_BYTES ? bytes : TOKEN_BYTES;
	u64 token = 0;

	if (!scan || !address || !length)
		return 0;
	if (occupy(&scan->busy)) {
		count_lost(LOST_TOKEN);
		return 0;
	}
	if (!bpf_probe_read_user(scan->bytes, length, (void *)address)) {
		scan->trace_id = 0;
		scan->request_id = 0;
		scan->length = length;
		scan->state = IN_METHOD;
		bpf_loop(TOKEN_BYTES, look_at_byte, &place, 0);
		token = scan->trace_id ? scan->trace_id : scan->request_id;
	}
	vacate(&scan->busy);
	return token;
}

/* `byte` is one of the message's. */
static __always_inline void send_token(struct task_struct *task, u32 flow, u32 connection, u64 byte,
				       u64 token)
{
	struct record_token *record;

	if (!token)
		return;
	record = reserve(record_token, LOST_TOKEN);
	if (!record)
		return;
	record->kind = RECORD_TOKEN;
	record->connection = connection;
	record->thread = task->pid;
	record->process = task->tgid;
	record->at_ns = bpf_ktime_get_ns();
	record->byte = byte;
	record->token = token;
	record->flow = flow;
	record->reserved = 0;
	submit(record);
}

/*
 * Returns the address of the first bytes that the call sends or receives, and their
 * maximum number.
 */
static __always_inline u64 call_buffer(struct task_struct *task, u64 *most)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long number = syscall_of_registers(regs);
	u64 address = argument(regs, 1);
	struct user_msghdr header;
	struct iovec vector;

	if (number < 0 || number >= LUC_SYSCALLS)
		return 0;
	switch (config.buffer_class[number & (LUC_SYSCALLS - 1)]) {
	case BUFFER_BYTES:
		return address;
	case BUFFER_MESSAGE:
		if (bpf_probe_read_user(&header, sizeof(header), (void *)address))
			return 0;
		address = (u64)header.msg_iov;
		break;
	case BUFFER_VECTOR:
		break;
	default:
		return 0;
	}
	if (bpf_probe_read_user(&vector, sizeof(vector), (void *)address))
		return 0;
	*most = vector.iov_len < *most ? vector.iov_len : *most;
	return (u64)vector.iov_base;
}

/* Looks at the begin of a send or a receive of the current thread. */
static __always_inline void look_for_token(struct task_struct *task, u32 flow, u32 connection,
					   u64 first, u64 bytes)
{
	u64 address;

	if (!config.tokens)
		return;
	address = call_buffer(task, &bytes);
	send_token(task, flow, connection, first, token_in(address, bytes));
}

#endif /* LUC_REQUEST_TOKENS_H */
