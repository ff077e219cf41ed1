/*
 * What the engine of Filebench's files is compared with: threads that make one call over and over on a file of their
 * own, by the same system call, and nothing else but counting and, with "clock", reading the time before and after.
 * With "inline" it reads the time too, and the system call is in the loop itself (x86-64) instead of in a function of
 * the C library.
 *
 * usage: loop CALL(read|stat) HOW(plain|clock|inline) THREADS SECONDS DIRECTORY
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int stop;
static int is_stat, has_clock, is_inline;
static const char *directory;

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static inline long invoke(long number, long first, void *second, long third, long fourth)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = fourth;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, first, second, third, fourth);
#endif
}

static inline int once(int fd, char *block, unsigned int place, struct stat *about)
{
	if (is_inline && is_stat)
		return invoke(SYS_fstat, fd, about, 0, 0) == 0;
	if (is_inline)
		return invoke(SYS_pread64, fd, block, 1, place >> 22) == 1;
	if (is_stat)
		return syscall(SYS_fstat, fd, about) == 0;
	return pread(fd, block, 1, place >> 22) == 1;
}

static void *run(void *number)
{
	char block[1024] = { 0 }, path[4096];
	unsigned int place = 1;
	struct stat about;
	long count, begun = 0, sum = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/loop-%ld", directory, (long)number);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || write(fd, block, sizeof(block)) != sizeof(block))
		exit(2);
	unlink(path);
	for (count = 0; !stop; count++) {
		if (has_clock)
			begun = now_ns();
		place = place * 1664525 + 1013904223;
		if (!once(fd, block, place, &about))
			exit(2);
		if (has_clock)
			sum += now_ns() - begun;
	}
	close(fd);
	return (void *)(sum < 0 ? 0 : count);
}

int main(int count, char **words)
{
	pthread_t threads[64];
	long number, number_of_threads, sum = 0, begun;
	double seconds;
	void *made;

	if (count != 6)
		return 2;
	is_stat = !strcmp(words[1], "stat");
	is_inline = !strcmp(words[2], "inline");
	has_clock = is_inline || !strcmp(words[2], "clock");
	number_of_threads = atol(words[3]);
	seconds = atof(words[4]);
	directory = words[5];
	if (number_of_threads < 1 || number_of_threads > 64)
		return 2;
	begun = now_ns();
	for (number = 0; number < number_of_threads; number++)
		if (pthread_create(&threads[number], NULL, run, (void *)number))
			return 2;
	usleep(seconds * 1e6);
	stop = 1;
	for (number = 0; number < number_of_threads; number++) {
		pthread_join(threads[number], &made);
		sum += (long)made;
	}
	printf("%.0f\n", sum * 1e9 / (now_ns() - begun));
	return 0;
}
