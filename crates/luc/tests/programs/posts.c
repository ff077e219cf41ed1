/*
 * A thread named "waits" waits for a semaphore, and is woken POSTS times. Says of
 * each wake-up between which two times of CLOCK_MONOTONIC it was, in ns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define POSTS 50

static sem_t semaphore;

static void *wait_for_all(void *unused)
{
	prctl(PR_SET_NAME, "waits");
	for (int i = 0; i < POSTS; i++)
		while (sem_wait(&semaphore))
			;
	return unused;
}

static unsigned long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

int main(void)
{
	unsigned long long before[POSTS], after[POSTS];
	pthread_t thread;

	sem_init(&semaphore, 0, 0);
	if (pthread_create(&thread, NULL, wait_for_all, NULL))
		return 2;
	for (int i = 0; i < POSTS; i++) {
		usleep(2000);
		before[i] = now_ns();
		sem_post(&semaphore);
		after[i] = now_ns();
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < POSTS; i++)
		printf("%llu %llu\n", before[i], after[i]);
	return 0;
}
