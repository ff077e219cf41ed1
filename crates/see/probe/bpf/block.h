/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Block requests, as the driver sees them. */
#ifndef LUC_BLOCK_H
#define LUC_BLOCK_H

struct in_flight {
	u64 insert_ns;
	u64 issue_ns;
	u32 issuer;
	u32 issuer_process;
};

/* Requests by address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct in_flight);
} requests SEC(".maps");

static __always_inline u32 disk_of(struct request *rq)
{
	struct gendisk *disk = rq->q->disk;

	return disk ? disk->major << 20 | disk->first_minor : 0;
}

/* Remembers the submitter of a request, the first time that it is seen. */
static __always_inline struct in_flight *see(struct request *rq)
{
	u64 key = (u64)rq, ids;
	struct in_flight new = {}, *known = bpf_map_lookup_elem(&requests, &key);

	if (known)
		return known;
	if (!device_wanted(disk_of(rq)))
		return NULL;
	ids = bpf_get_current_pid_tgid();
	new.issuer = ids;
	new.issuer_process = ids >> 32;
	bpf_map_update_elem(&requests, &key, &new, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&requests, &key);
	if (!known)
		count_lost(LOST_MAP_REQUESTS);
	return known;
}

/* Since Linux 6.3: accounting begins, in the context of the submitter. */
SEC("tp_btf/block_io_start")
int BPF_PROG(block_io_start, struct request *rq)
{
	struct in_flight *known = see(rq);

	if (known)
		known->insert_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(block_rq_insert, struct request *rq)
{
	struct in_flight *known = see(rq);

	if (known && !known->insert_ns)
		known->insert_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *rq)
{
	struct in_flight *known = see(rq);

	if (known)
		known->issue_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int status, unsigned int bytes)
{
	u64 now, key = (u64)rq;
	struct in_flight *known = bpf_map_lookup_elem(&requests, &key);
	struct record_request *record;
	u32 command = rq->cmd_flags;

	if (!known)
		return 0;
	/* Only a part; the rest follows. */
	if (bytes < rq->__data_len)
		return 0;
	now = bpf_ktime_get_ns();
	if (config.summary) {
		struct summary_key sum = {
			.dev = disk_of(rq),
			.what = (command & REQ_OP_MASK) == REQ_OP_FLUSH ? SUMMARIZE_FLUSH
									: SUMMARIZE_REQUEST,
		};

		summarize(&sum, 0, now - known->issue_ns);
	} else if (known->issue_ns) {
		record = reserve(record_request, LOST_REQUEST);
		if (record) {
			record->kind = RECORD_REQUEST;
			record->dev = disk_of(rq);
			record->sector = rq->__sector;
			record->insert_ns = known->insert_ns;
			record->issue_ns = known->issue_ns;
			record->complete_ns = now;
			record->bytes = bytes;
			record->command = command;
			record->issuer = known->issuer;
			record->issuer_process = known->issuer_process;
			record->status = status;
			record->reserved = 0;
			submit(record);
		}
	}
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

#endif /* LUC_BLOCK_H */
