/*
 * Threads that run known functions, and threads that wait for mutexes that known threads have.
 *
 *   known THREADS LOCKS
 *
 * Says a line for each: "start TID FUNCTION", and "wait TID HOLDER"; then "ready". A line on its input makes as many
 * threads of each function once more, and it says "done". Ends when its input does.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUNCTIONS 5
#define STACK_BYTES (64 << 10)

struct lock {
	pthread_mutex_t mutex;
	sem_t is_held;
	long holder;
};

static int tid(void)
{
	return (int)syscall(SYS_gettid);
}

static void *stay(const char *function)
{
	printf("start %d %s\n", tid(), function);
	fflush(stdout);
	for (;;)
		pause();
	return NULL;
}

#define FUNCTION(name) \
	void *name(void *unused) { (void)unused; return stay(#name); }

FUNCTION(read_ahead)
FUNCTION(write_back)
FUNCTION(accept_connections)
FUNCTION(answer_requests)
FUNCTION(clean_up)

static void *(*const functions[FUNCTIONS])(void *) = {
	read_ahead, write_back, accept_connections, answer_requests, clean_up,
};

void *hold(void *argument)
{
	struct lock *lock = argument;

	pthread_mutex_lock(&lock->mutex);
	lock->holder = tid();
	sem_post(&lock->is_held);
	for (;;)
		pause();
	return NULL;
}

void *wait_for_it(void *argument)
{
	struct lock *lock = argument;

	printf("wait %d %ld\n", tid(), lock->holder);
	fflush(stdout);
	pthread_mutex_lock(&lock->mutex);
	return NULL;
}

static void make(void *(*function)(void *), void *argument)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	if (pthread_create(&thread, &small, function, argument))
		exit(2);
	pthread_attr_destroy(&small);
}

static void make_all(int threads)
{
	for (int i = 0; i < threads; i++)
		make(functions[i % FUNCTIONS], NULL);
	/* All of them say what they are. */
	sleep(1);
}

int main(int count, char **words)
{
	struct lock *locks;
	int threads, held;

	if (count != 3)
		return 2;
	threads = atoi(words[1]);
	held = atoi(words[2]);
	locks = calloc(held, sizeof(*locks));
	if (!locks)
		return 2;
	for (struct lock *lock = locks; lock < locks + held; lock++) {
		pthread_mutex_init(&lock->mutex, NULL);
		sem_init(&lock->is_held, 0, 0);
		make(hold, lock);
		sem_wait(&lock->is_held);
		make(wait_for_it, lock);
	}
	make_all(threads);
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 0;
	make_all(threads);
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
