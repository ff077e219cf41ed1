/*
 * A program that does nothing but switch: pairs of threads that pass a byte through two pipes. Both
 * threads of a pair have the same processor, so each passing is a context switch, and the processor
 * is never idle.
 *
 * switches PAIRS WORK WARMUP SECONDS: steps of computing between two switches of a thread, and
 * seconds that are not counted and that are. Prints round trips and switches (by the kernel's
 * count) of all pairs per second. switches PAIRS calibrate RATE: prints the work that makes this
 * many switches a second.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_PAIRS 1024
#define CALIBRATION_S 0.3
#define CALIBRATIONS 5

/* A pair's pipes and round trips, aligned so that pairs do not slow down each other. */
struct pair {
	_Alignas(128) atomic_long rounds;
	int to[2], back[2], processor;
	long work;
};

struct done {
	double rounds_per_s, switches_per_s;
};

static struct pair all[MAX_PAIRS];
static atomic_int over;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* Steps that depend on each other; the compiler leaves none out. */
static void compute(long steps)
{
	unsigned long state = 1;

	while (steps-- > 0) {
		state *= 6364136223846793005UL;
		__asm__ volatile("" : "+r"(state));
	}
}

static void stay_on(int processor)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		fail("a processor");
}

static void *call(void *of)
{
	struct pair *pair = of;
	char byte = 1;

	stay_on(pair->processor);
	while (!over) {
		compute(pair->work);
		if (write(pair->to[1], &byte, 1) != 1 || read(pair->back[0], &byte, 1) != 1)
			fail("a pipe");
		pair->rounds++;
	}
	close(pair->to[1]);
	return NULL;
}

static void *echo(void *of)
{
	struct pair *pair = of;
	char byte;

	stay_on(pair->processor);
	while (read(pair->to[0], &byte, 1) == 1) {
		compute(pair->work);
		if (write(pair->back[1], &byte, 1) != 1)
			fail("a pipe");
	}
	return NULL;
}

static void pause_s(double seconds)
{
	struct timespec length = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };

	nanosleep(&length, NULL);
}

/* Round trips of all pairs, switches of this process, and the time, s. */
static void count(int pairs, double counts[3])
{
	struct rusage usage;
	struct timespec now;
	int i;

	counts[0] = 0;
	for (i = 0; i < pairs; i++)
		counts[0] += all[i].rounds;
	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_MONOTONIC, &now);
	counts[1] = usage.ru_nvcsw + usage.ru_nivcsw;
	counts[2] = now.tv_sec + now.tv_nsec / 1e9;
}

static struct done switches(int pairs, long work, double warmup, double seconds)
{
	pthread_t threads[2 * MAX_PAIRS];
	double before[3], after[3];
	int i, processor = -1;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fail("processors");
	over = 0;
	for (i = 0; i < pairs; i++) {
		struct pair *pair = &all[i];

		do
			processor = (processor + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(processor, &allowed));
		pair->rounds = 0;
		pair->work = work;
		pair->processor = processor;
		if (pipe(pair->to) || pipe(pair->back) ||
		    pthread_create(&threads[2 * i], NULL, echo, pair) ||
		    pthread_create(&threads[2 * i + 1], NULL, call, pair))
			fail("a pair");
	}
	pause_s(warmup);
	count(pairs, before);
	pause_s(seconds);
	count(pairs, after);
	over = 1;
	for (i = 0; i < 2 * pairs; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < pairs; i++) {
		close(all[i].to[0]);
		close(all[i].back[0]);
		close(all[i].back[1]);
	}
	return (struct done){
		.rounds_per_s = (after[0] - before[0]) / (after[2] - before[2]),
		.switches_per_s = (after[1] - before[1]) / (after[2] - before[2]),
	};
}

/* Time for each switch = idle + step * work: two points give both, and each further run corrects.
 */
static long calibrate(int pairs, double rate)
{
	double idle = 1e9 / switches(pairs, 0, 0, CALIBRATION_S).switches_per_s;
	long work = 1000;
	int i;

	for (i = 0; i < CALIBRATIONS; i++) {
		double ns = 1e9 / switches(pairs, work, 0, CALIBRATION_S).switches_per_s;
		double step = (ns - idle) / work;

		work = (1e9 / rate - idle) / (step > 1e-6 ? step : 1e-6);
		if (work < 1)
			work = 1;
	}
	return work;
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 0;
	struct done done;

	if (pairs < 1 || pairs > MAX_PAIRS || argc < 4)
		return 2;
	if (!strcmp(argv[2], "calibrate")) {
		printf("%ld\n", calibrate(pairs, atof(argv[3])));
		return 0;
	}
	if (argc != 5)
		return 2;
	done = switches(pairs, atol(argv[2]), atof(argv[3]), atof(argv[4]));
	printf("{\"rounds_per_s\": %f, \"switches_per_s\": %f}\n", done.rounds_per_s,
	       done.switches_per_s);
	return 0;
}
