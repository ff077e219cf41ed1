/*
 * A thread named "holder" has a mutex, and one named "waiter" waits for it.
 *
 *   locks plain|recursive|inherit
 *
 * Says "waits" when the waiter sleeps. A line on its input ends the wait: it says "done". Ends when its input does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static int waiter_tid;

static void *wait_for_it(void *unused)
{
	prctl(PR_SET_NAME, "waiter");
	__atomic_store_n(&waiter_tid, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

/* Whether a thread of this process sleeps in futex(2). */
static int sleeps(int tid)
{
	char path[64], text[32] = "", wanted[16];
	int file;

	snprintf(path, sizeof(path), "/proc/thread-self/../%d/syscall", tid);
	snprintf(wanted, sizeof(wanted), "%d ", SYS_futex);
	file = open(path, O_RDONLY);
	if (file < 0 || read(file, text, sizeof(text) - 1) < 0)
		exit(2);
	close(file);
	return !strncmp(text, wanted, strlen(wanted));
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attributes;
	pthread_t waiter;

	if (argc != 2)
		return 2;
	prctl(PR_SET_NAME, "holder");
	pthread_mutexattr_init(&attributes);
	if (!strcmp(argv[1], "inherit"))
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (!strcmp(argv[1], "recursive"))
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&mutex, &attributes);
	pthread_mutex_lock(&mutex);
	if (pthread_create(&waiter, NULL, wait_for_it, NULL))
		return 2;
	while (!__atomic_load_n(&waiter_tid, __ATOMIC_SEQ_CST) || !sleeps(waiter_tid))
		usleep(1000);
	puts("waits");
	fflush(stdout);
	if (getchar() == EOF)
		return 0;
	pthread_mutex_unlock(&mutex);
	pthread_join(waiter, NULL);
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
