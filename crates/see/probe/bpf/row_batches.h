/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows that come by the hundred thousand a second if the network is recorded: messages
 * and waits. Each processor gathers them and hands over many at once. A place in the
 * ring buffer, for which all processors queue, costs more than the rest of such a row.
 *
 * A program may interrupt or preempt (Linux 7.0) another one in the middle of its row.
 * It then sends its own row alone: the program that set `busy` owns the batch. Once in
 * a while user space makes each processor hand over its rows, and at the end it takes
 * the rest.
 */
#ifndef LUC_ROW_BATCHES_H
#define LUC_ROW_BATCHES_H

#define send_rows(rows, count_, place)                                                             \
	({                                                                                         \
		if (bpf_ringbuf_output(&records, (void *)(rows), (count_) * sizeof(*(rows)),       \
				       BPF_RB_NO_WAKEUP))                                          \
			count_lost_rows(place, count_);                                            \
	})

/* Batches of rows, `gather_` for the next row, and `hand_over_` for those that a processor holds.
 */
#define DEFINE_BATCH(name, place)                                                                  \
	struct name##_batch {                                                                      \
		struct batch_head head;                                                            \
		struct record_##name rows[LUC_BATCH];                                              \
	};                                                                                         \
                                                                                                   \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                           \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, struct name##_batch);                                                \
	} name##_batches SEC(".maps");                                                             \
                                                                                                   \
	static __always_inline void gather_##name(const struct record_##name *row)                 \
	{                                                                                          \
		u32 zero = 0, index;                                                               \
		struct name##_batch *batch = bpf_map_lookup_elem(&name##_batches, &zero);          \
                                                                                                   \
		if (!batch || occupy(&batch->head.busy)) {                                         \
			send_rows(row, 1, place);                                                  \
			return;                                                                    \
		}                                                                                  \
		index = batch->head.count & (LUC_BATCH - 1);                                       \
		batch->rows[index] = *row;                                                         \
		if (index < LUC_BATCH - 1) {                                                       \
			batch->head.count = index + 1;                                             \
		} else {                                                                           \
			send_rows(batch->rows, LUC_BATCH, place);                                  \
			batch->head.count = 0;                                                     \
		}                                                                                  \
		vacate(&batch->head.busy);                                                         \
	}                                                                                          \
                                                                                                   \
	static __always_inline void hand_over_##name(void)                                         \
	{                                                                                          \
		u32 zero = 0, count;                                                               \
		struct name##_batch *batch = bpf_map_lookup_elem(&name##_batches, &zero);          \
                                                                                                   \
		if (!batch || occupy(&batch->head.busy))                                           \
			return;                                                                    \
		count = batch->head.count & (LUC_BATCH - 1);                                       \
		if (count)                                                                         \
			send_rows(batch->rows, count, place);                                      \
		batch->head.count = 0;                                                             \
		vacate(&batch->head.busy);                                                         \
	}

DEFINE_BATCH(message, LOST_MESSAGE)
DEFINE_BATCH(wait, LOST_WAIT)

/* Run by user space on each processor. */
SEC("raw_tp")
int hand_over(void *ctx)
{
	hand_over_message();
	hand_over_wait();
	return 0;
}

#endif /* LUC_ROW_BATCHES_H */
