/*
 * Programs whose calls are notified; linked statically. Run under `luc run` by the tests in notify/.
 *
 *	notified crowd THREADS MILLISECONDS LIMIT_MS [storm]
 *		Threads that write and synchronize a file each, and say how many calls they made, how many took longer
 *		than the limit, and how many failed: "calls N slow N failed N longest_ms N". Each makes one at least.
 *		With `storm`, another thread sends SIGURG to all of them all the time, as Go's runtime does. They end
 *		before their time when there is a file "over".
 *	notified once FILE
 *		Writes and synchronizes a file by fsync, then by fdatasync, and prints what both returned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 256

static atomic_long calls, slow, failed, longest_us, urgent;
static atomic_int is_over;
static double limit_s;
static pid_t threads_by_kernel[MOST_THREADS];

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void *synchronize(void *number)
{
	long index = (long)number, count = 0;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "crowd-%d-%ld", (int)getpid(), index);
	fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (fd < 0) {
		perror(name);
		exit(1);
	}
	threads_by_kernel[index] = (pid_t)syscall(SYS_gettid);
	do {
		double begun_s = now_s(), took_s;
		int result;

		if (pwrite(fd, "x", 1, count % 8192) != 1)
			atomic_fetch_add(&failed, 1);
		result = count % 2 ? fdatasync(fd) : fsync(fd);
		took_s = now_s() - begun_s;
		atomic_fetch_add(&calls, 1);
		if (result) {
			fprintf(stderr, "thread %ld: errno %d\n", index, errno);
			atomic_fetch_add(&failed, 1);
		}
		if (took_s > limit_s)
			atomic_fetch_add(&slow, 1);
		if (took_s * 1e6 > (double)atomic_load(&longest_us))
			atomic_store(&longest_us, (long)(took_s * 1e6));
		count++;
	} while (!atomic_load(&is_over));
	close(fd);
	unlink(name);
	return NULL;
}

static void urge(int signal)
{
	(void)signal;
	atomic_fetch_add(&urgent, 1);
}

static void *storm(void *count)
{
	long threads = (long)count, index;

	while (!atomic_load(&is_over)) {
		for (index = 0; index < threads; index++)
			if (threads_by_kernel[index])
				syscall(SYS_tgkill, getpid(), threads_by_kernel[index], SIGURG);
		usleep(200);
	}
	return NULL;
}

static int crowd(long count, long milliseconds, int is_stormy)
{
	struct sigaction action = { .sa_handler = urge, .sa_flags = SA_RESTART };
	pthread_t threads[MOST_THREADS], of_storm;
	double begun_s;
	long index;

	if (count < 1 || count > MOST_THREADS)
		return 2;
	sigaction(SIGURG, &action, NULL);
	for (index = 0; index < count; index++)
		if (pthread_create(&threads[index], NULL, synchronize, (void *)index))
			return 1;
	if (is_stormy && pthread_create(&of_storm, NULL, storm, (void *)count))
		return 1;
	for (begun_s = now_s(); now_s() - begun_s < milliseconds / 1e3 && access("over", F_OK);)
		usleep(1000 * (milliseconds < 20 ? milliseconds : 20));
	atomic_store(&is_over, 1);
	for (index = 0; index < count; index++)
		pthread_join(threads[index], NULL);
	if (is_stormy) {
		pthread_join(of_storm, NULL);
		if (!atomic_load(&urgent)) {
			fprintf(stderr, "no signal came\n");
			return 1;
		}
	}
	printf("calls %ld slow %ld failed %ld longest_ms %ld\n", atomic_load(&calls), atomic_load(&slow),
	       atomic_load(&failed), atomic_load(&longest_us) / 1000);
	return 0;
}

static int once(const char *name)
{
	int fd = open(name, O_CREAT | O_RDWR, 0600), first, second;

	if (fd < 0 || pwrite(fd, "x", 1, 0) != 1)
		return 1;
	first = fsync(fd) ? errno : 0;
	if (pwrite(fd, "y", 1, 1) != 1)
		return 1;
	second = fdatasync(fd) ? errno : 0;
	printf("fsync %d fdatasync %d\n", first, second);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "crowd")) {
		limit_s = atof(argv[4]) / 1e3;
		return crowd(atol(argv[2]), atol(argv[3]), argc > 5);
	}
	if (argc == 3 && !strcmp(argv[1], "once"))
		return once(argv[2]);
	fprintf(stderr, "usage: notified crowd THREADS MS LIMIT_MS [storm] | notified once FILE\n");
	return 2;
}
