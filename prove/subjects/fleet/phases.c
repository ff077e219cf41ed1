/*
 * Works in phases of several kinds, and counts what that takes by counters that nobody else can
 * have.
 *
 *   phases SEED MILLISECONDS
 *
 * Phases last 50 to 400 ms: it computes, copies memory, calls the kernel, or sleeps and computes by
 * turns. A child that executes this program anew does the work. Says "process PID" of it, and a
 * line for each event, "EVENT COUNT", from the child's exec to its end. The counters are pinned:
 * the kernel never takes them away. Ends with status 3 if it had one not all the time.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COPIED (1 << 20)

struct counter {
	const char *name;
	uint64_t config;
	int only_user;
	int fd;
};

static struct counter counters[] = {
	{ "cycles:u", PERF_COUNT_HW_CPU_CYCLES, 1, -1 },
	{ "cycles:k", PERF_COUNT_HW_CPU_CYCLES, 0, -1 },
	{ "instructions:u", PERF_COUNT_HW_INSTRUCTIONS, 1, -1 },
	{ "instructions:k", PERF_COUNT_HW_INSTRUCTIONS, 0, -1 },
};
#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static char from[COPIED], to[COPIED];
static volatile uint64_t result;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void open_counter(struct counter *counter, pid_t process)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = counter->config,
		.disabled = 1,
		.enable_on_exec = 1,
		.pinned = 1,
		.exclude_kernel = counter->only_user,
		.exclude_user = !counter->only_user,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	counter->fd = syscall(SYS_perf_event_open, &attr, process, -1, -1, 0);
	if (counter->fd < 0)
		fail(counter->name);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static void compute(void)
{
	for (int i = 0; i < 10000; i++)
		result = result * 6364136223846793005ull + 1442695040888963407ull;
}

static void work(int kind)
{
	struct timespec brief = { .tv_nsec = 1000000 };

	switch (kind) {
	case 0:
		compute();
		break;
	case 1:
		memcpy(to, from, COPIED);
		break;
	case 2:
		for (int i = 0; i < 100; i++)
			syscall(SYS_getppid);
		break;
	default:
		nanosleep(&brief, NULL);
		compute();
	}
}

static void do_work(unsigned int seed, uint64_t ms)
{
	uint64_t end = now_ms() + ms, phase_end;

	srandom(seed);
	memset(from, 1, COPIED);
	while (now_ms() < end) {
		int kind = random() % 4;

		phase_end = now_ms() + 50 + random() % 350;
		while (now_ms() < phase_end && now_ms() < end)
			work(kind);
	}
}

/* The child waits until it is counted. */
static pid_t child_of(char **words, int *go_on)
{
	char *again[] = { words[0], words[1], words[2], "child", NULL };
	int ends[2];
	char byte;
	pid_t child;

	if (pipe(ends))
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child) {
		close(ends[0]);
		*go_on = ends[1];
		return child;
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) == 1)
		execv("/proc/self/exe", again);
	_exit(2);
}

int main(int count, char **words)
{
	uint64_t values[3];
	int go_on, status;
	pid_t child;

	if (count == 4) {
		do_work(atoi(words[1]), atoi(words[2]));
		return 0;
	}
	if (count != 3)
		return 2;
	child = child_of(words, &go_on);
	for (size_t i = 0; i < COUNTERS; i++)
		open_counter(&counters[i], child);
	if (write(go_on, "", 1) != 1 || waitpid(child, &status, 0) != child || status)
		fail("the child");
	printf("process %d\n", child);
	for (size_t i = 0; i < COUNTERS; i++) {
		if (read(counters[i].fd, values, sizeof(values)) != sizeof(values))
			fail(counters[i].name);
		printf("%s %llu\n", counters[i].name, (unsigned long long)values[0]);
		if (values[1] != values[2])
			status = 3;
	}
	return status;
}
