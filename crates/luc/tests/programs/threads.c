/*
 * Makes threads that run known functions.
 *
 *   threads [brief]
 *
 * Says "ready" when a thread of stay() is there. A line on its input makes
 * THREADS threads of end_at_once(), one after the other: it says "done" when
 * all have ended. Ends when its input does. With "brief" it makes only the
 * latter, and ends.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 50

void *stay(void *unused)
{
	pause();
	return unused;
}

void *end_at_once(void *unused)
{
	return unused;
}

static pthread_t thread_of(void *(*routine)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, routine, NULL))
		exit(2);
	return thread;
}

static void make_brief_threads(void)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread_of(end_at_once), NULL);
	/* The recorder looks at the program some 20 times a second. */
	usleep(200000);
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(int count, char **words)
{
	(void)words;
	if (count > 1) {
		make_brief_threads();
		return 0;
	}
	thread_of(stay);
	say("ready");
	if (getchar() == EOF)
		return 0;
	make_brief_threads();
	say("done");
	while (getchar() != EOF)
		;
	return 0;
}
