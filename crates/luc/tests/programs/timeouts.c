/*
 * A thread named "waits" waits TIMEOUTS times until a timer ends the wait, on a
 * processor on which another thread computes all the time.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#define TIMEOUTS 50

static volatile int is_over;

static void *compute(void *unused)
{
	while (!is_over)
		;
	return unused;
}

static void *wait_for_timers(void *unused)
{
	prctl(PR_SET_NAME, "waits");
	for (int i = 0; i < TIMEOUTS; i++)
		poll(NULL, 0, 2);
	is_over = 1;
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(sched_getcpu(), &first);
	if (sched_setaffinity(0, sizeof(first), &first) ||
	    pthread_create(&threads[0], NULL, compute, NULL) ||
	    pthread_create(&threads[1], NULL, wait_for_timers, NULL))
		return 2;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
