/*
 * creator create THREADS SECONDS: threads create files of 1 KiB in the working directory, write, fsync and close them.
 * creator append THREADS SECONDS: threads append 1 KiB to a file each and fsync it.
 * Prints how often that was done per second.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int is_over;
static atomic_long done;
static int is_create;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_new(long thread, long number)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "c-%d-%ld-%ld", (int)getpid(), thread, number);
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (fd < 0)
		fail(name);
	return fd;
}

static void *work(void *thread)
{
	static const char record[1024];
	int fd = is_create ? -1 : open_new((long)thread, 0);
	long number;

	for (number = 0; !atomic_load(&is_over); number++) {
		if (is_create)
			fd = open_new((long)thread, number);
		if (write(fd, record, sizeof(record)) != sizeof(record))
			fail("write");
		if (fsync(fd))
			fail("fsync");
		if (is_create)
			close(fd);
		atomic_fetch_add(&done, 1);
	}
	return NULL;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	long count, index, before;
	double seconds, begun_s;

	if (argc != 4 || (count = atol(argv[2])) < 1 || count > 256)
		return 2;
	is_create = !strcmp(argv[1], "create");
	seconds = atof(argv[3]);
	for (index = 0; index < count; index++)
		if (pthread_create(&threads[index], NULL, work, (void *)index))
			fail("pthread_create");
	before = atomic_load(&done);
	begun_s = now_s();
	usleep((useconds_t)(seconds * 1e6));
	printf("%.3f\n", (double)(atomic_load(&done) - before) / (now_s() - begun_s));
	atomic_store(&is_over, 1);
	for (index = 0; index < count; index++)
		pthread_join(threads[index], NULL);
	return 0;
}
