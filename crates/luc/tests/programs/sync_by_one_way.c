/*
 * Makes a file durable again and again, by one of several ways: passing FILE COUNT
 * fsync|dsync|uring. Status 77: this kernel has no io_uring for us.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
	int fd;
	unsigned *tail, *array, *head, *ended;
	struct io_uring_sqe *entries;
};

static void *map(int fd, size_t bytes, off_t offset)
{
	void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (place == MAP_FAILED)
		exit(1);
	return place;
}

static struct ring make(void)
{
	struct io_uring_params params;
	struct ring ring;
	char *submissions, *completions;

	memset(&params, 0, sizeof(params));
	ring.fd = syscall(SYS_io_uring_setup, 1, &params);
	if (ring.fd < 0)
		exit(77);
	submissions = map(ring.fd, params.sq_off.array + params.sq_entries * sizeof(unsigned),
			  IORING_OFF_SQ_RING);
	completions =
		map(ring.fd, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
		    IORING_OFF_CQ_RING);
	ring.entries = map(ring.fd, params.sq_entries * sizeof(*ring.entries), IORING_OFF_SQES);
	ring.tail = (unsigned *)(submissions + params.sq_off.tail);
	ring.array = (unsigned *)(submissions + params.sq_off.array);
	ring.head = (unsigned *)(completions + params.cq_off.head);
	ring.ended = (unsigned *)(completions + params.cq_off.tail);
	return ring;
}

static void sync_by(struct ring *ring, int file)
{
	memset(ring->entries, 0, sizeof(*ring->entries));
	ring->entries->opcode = IORING_OP_FSYNC;
	ring->entries->fd = file;
	ring->array[0] = 0;
	__atomic_store_n(ring->tail, *ring->tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		exit(1);
	if (__atomic_load_n(ring->ended, __ATOMIC_ACQUIRE) != *ring->head + 1)
		exit(1);
	__atomic_store_n(ring->head, *ring->head + 1, __ATOMIC_RELEASE);
}

int main(int count, char **words)
{
	int is_uring, is_dsync, file, i;
	struct ring ring;

	if (count != 4)
		return 2;
	is_uring = !strcmp(words[3], "uring");
	is_dsync = !strcmp(words[3], "dsync");
	file = open(words[1], O_CREAT | O_WRONLY | (is_dsync ? O_DSYNC : 0), 0600);
	if (file < 0)
		return 1;
	if (is_uring)
		ring = make();
	for (i = 0; i < atoi(words[2]); i++) {
		if (pwrite(file, &i, sizeof(i), i * sizeof(i)) != sizeof(i))
			return 1;
		if (is_uring)
			sync_by(&ring, file);
		else if (!is_dsync && fsync(file))
			return 1;
	}
	return 0;
}
