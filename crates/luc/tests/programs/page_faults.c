/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that each touch a number of new pages, with pauses, and say how many
 * page faults the kernel counts for them: `THREAD FAULTS`. The first one then
 * computes for half a second of its own processor time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define PAGE 4096

static void compute(long ms)
{
	struct timespec now;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

static void *touch(void *argument)
{
	long number = (long)argument, pages = 100 + 1000 * number, i;
	struct rusage usage;
	char *memory;

	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, pages * PAGE, MADV_NOHUGEPAGE))
		abort();
	for (i = 0; i < pages; i++) {
		memory[i * PAGE] = 1;
		if (i % 100 == 0)
			usleep(100);
	}
	if (number == 0)
		compute(500);
	getrusage(RUSAGE_THREAD, &usage);
	printf("%ld %ld\n", (long)syscall(SYS_gettid), usage.ru_minflt + usage.ru_majflt);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	long i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, touch, (void *)i))
			abort();
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
