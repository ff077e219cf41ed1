/*
 * Threads that each read a file of their own, past the page cache: readers FOLDER THREADS. All of
 * them begin at once, and read their file several times.
 *
 * The files are FOLDER/0, FOLDER/1 and so on. Ends with 1 if one of them cannot be read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK (128 << 10)
#define MOST 64
#define TIMES 8

static const char *folder;
static pthread_barrier_t all_are_there;

static void *read_one(void *number)
{
	char path[4096];
	ssize_t got = -1;
	void *block;
	int fd, left;

	snprintf(path, sizeof(path), "%s/%ld", folder, (long)number);
	fd = open(path, O_RDONLY | O_DIRECT);
	pthread_barrier_wait(&all_are_there);
	if (fd < 0 || posix_memalign(&block, 4096, BLOCK))
		return (void *)1L;
	for (left = TIMES; left > 0 && !lseek(fd, 0, SEEK_SET); left--)
		do
			got = read(fd, block, BLOCK);
		while (got > 0);
	return (void *)(long)(got != 0);
}

int main(int count, char **words)
{
	pthread_t threads[MOST];
	long number, wanted = count == 3 ? atol(words[2]) : 0;
	void *failed;
	int status = 0;

	if (wanted < 1 || wanted > MOST)
		return 2;
	folder = words[1];
	if (pthread_barrier_init(&all_are_there, NULL, wanted))
		return 2;
	for (number = 0; number < wanted; number++)
		if (pthread_create(&threads[number], NULL, read_one, (void *)number))
			return 2;
	for (number = 0; number < wanted; number++) {
		pthread_join(threads[number], &failed);
		status |= failed != NULL;
	}
	return status;
}
