/*
 * What runs in each guest: it reads the guest's clocks beside the processor's time stamp counter, compares that counter
 * with those of the other guests through memory that they share, changes the clock as it is told, and talks over TCP
 * with each other guest.
 *
 * inside NUMBER HOSTS SECONDS PER_S SEED MEMORY SCHEDULE OUT
 *
 * SCHEDULE has lines `AT_US rate PPB` (adjtimex) and `AT_US step NS` (settimeofday). OUT/clocks and OUT/counters are
 * arrays of the structures below. Guests i < j have the addresses 10.0.(8i + j).1 and .2.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define MOST_HOSTS 8
#define PORT 7000
#define MESSAGE_BYTES 64
/* Between two readings of the clocks, and how often each is tried: some are interrupted. */
#define READ_EVERY_US 1000
#define TRIES 3
/* Counters are compared at length before and after the clocks are read, and in bursts meanwhile. */
#define AT_LENGTH_NS 2000000000ULL
#define BURST_NS 1000000
#define BURST_EVERY_US 50000
#define TURNS 16
#define MOST_COMPARED 16384
#define WINDOW_NS 1000000000
/* How long the others may take to come and to end. */
#define PATIENCE_S 300

/* Clocks, and the counter before and after each. */
struct reading {
	uint64_t before, monotonic_ns, after;
	uint64_t raw_before, raw_ns, raw_after;
	int64_t rate_ppb;
};

/* In a time of our counter: the least difference of our counter and the newest reading of a peer's. */
struct compared {
	uint64_t begin, end;
	uint64_t peer, seen;
	int64_t least;
};

/* A line of the shared memory is one host's. */
struct line {
	_Atomic uint64_t counter;
	_Atomic uint64_t is_ready, is_done;
	char rest[40];
};

static int number, hosts;
static double seconds, per_s;
static unsigned seed;
static struct line *lines;
static const char *out;
static _Atomic int is_over;
static uint64_t began_ns;

/* `luc record` passes this status on; 1 is its own, for rows that were lost. */
static void fail(const char *what)
{
	fprintf(stderr, "inside: %s: %s\n", what, strerror(errno));
	exit(3);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static void sleep_us(double us)
{
	struct timespec time = { .tv_sec = us / 1e6, .tv_nsec = fmod(us, 1e6) * 1e3 };
	nanosleep(&time, NULL);
}

static void begin(pthread_t *thread, void *(*run)(void *), void *argument)
{
	errno = pthread_create(thread, NULL, run, argument);
	if (errno)
		fail("pthread_create");
}

static void write_out(const char *name, const void *rows, size_t size, size_t count)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", out, name);
	FILE *file = fopen(path, "w");
	if (!file || fwrite(rows, size, count, file) != count || fclose(file))
		fail(path);
}

static void wait_for(_Atomic uint64_t *flag)
{
	uint64_t since_ns = now_ns(CLOCK_MONOTONIC);
	while (!atomic_load(flag)) {
		if (now_ns(CLOCK_MONOTONIC) - since_ns > PATIENCE_S * 1000000000ULL) {
			errno = ETIMEDOUT;
			fail("another guest");
		}
		sleep_us(1000);
	}
}

/* Reading the clocks. */

static struct reading read_once(void)
{
	struct reading reading;
	reading.before = __rdtsc();
	reading.monotonic_ns = now_ns(CLOCK_MONOTONIC);
	reading.after = __rdtsc();
	reading.raw_before = __rdtsc();
	reading.raw_ns = now_ns(CLOCK_MONOTONIC_RAW);
	reading.raw_after = __rdtsc();
	return reading;
}

static int64_t rate_ppb(void)
{
	struct timex state = { .modes = 0 };
	if (adjtimex(&state) < 0)
		fail("adjtimex");
	return ((int64_t)state.freq * 1000 >> 16) + (state.tick - 10000) * 100000;
}

static void read_clocks(void)
{
	size_t most = seconds * 1e6 / READ_EVERY_US + 1, count = 0;
	struct reading *readings = calloc(most, sizeof(*readings));
	if (!readings)
		fail("memory");
	while (count < most && now_ns(CLOCK_MONOTONIC) - began_ns < seconds * 1e9) {
		struct reading best = read_once();
		for (int attempt = 1; attempt < TRIES; attempt++) {
			struct reading next = read_once();
			if (next.after - next.before < best.after - best.before)
				best = next;
		}
		best.rate_ppb = rate_ppb();
		readings[count++] = best;
		sleep_us(READ_EVERY_US);
	}
	write_out("clocks", readings, sizeof(*readings), count);
}

/* Comparing the counters. */

static struct compared *compared;
static size_t compared_count;

/* A row for each peer, of the time that begins now. */
static struct compared *begin_window(void)
{
	struct compared *window = compared + compared_count;
	if (compared_count + hosts > MOST_COMPARED)
		return NULL;
	for (int peer = 0; peer < hosts; peer++)
		window[peer] = (struct compared){ .begin = __rdtsc(), .peer = peer, .least = INT64_MAX };
	return window;
}

static void end_window(struct compared *window)
{
	for (int peer = 0; peer < hosts; peer++)
		window[peer].end = __rdtsc();
	compared_count += hosts;
}

/* Tells our counter and reads those of the others, for so long. */
static void compare_for(struct compared *window, uint64_t ns)
{
	static uint64_t last[MOST_HOSTS];
	uint64_t since_ns = now_ns(CLOCK_MONOTONIC_RAW);
	while (now_ns(CLOCK_MONOTONIC_RAW) - since_ns < ns) {
		for (int turn = 0; turn < TURNS; turn++) {
			int peer = (number + 1 + turn % (hosts - 1)) % hosts;
			atomic_store(&lines[number].counter, __rdtsc());
			uint64_t theirs = atomic_load(&lines[peer].counter);
			_mm_lfence();
			int64_t difference = __rdtsc() - theirs;
			if (theirs == last[peer] || !theirs)
				continue;
			last[peer] = theirs;
			window[peer].seen++;
			if (difference < window[peer].least)
				window[peer].least = difference;
		}
	}
}

/* All compare at once, and at length: only guests that run at the same time see each other's counter soon. */
static void compare_at_length(void)
{
	struct compared *window = begin_window();
	if (window) {
		compare_for(window, AT_LENGTH_NS);
		end_window(window);
	}
}

static void *compare(void *argument)
{
	struct compared *window;
	(void)argument;
	while (!is_over && (window = begin_window())) {
		uint64_t window_ns = now_ns(CLOCK_MONOTONIC_RAW);
		while (!is_over && now_ns(CLOCK_MONOTONIC_RAW) - window_ns < WINDOW_NS) {
			compare_for(window, BURST_NS);
			sleep_us(BURST_EVERY_US);
		}
		end_window(window);
	}
	return NULL;
}

/* Changing the clock. */

static void *change(void *argument)
{
	FILE *schedule = argument;
	char what[16];
	double at_us;
	long long value;
	while (fscanf(schedule, "%lf %15s %lld", &at_us, what, &value) == 3) {
		double passed_us = (now_ns(CLOCK_MONOTONIC) - began_ns) / 1e3;
		if (at_us > passed_us)
			sleep_us(at_us - passed_us);
		if (is_over)
			break;
		if (!strcmp(what, "rate")) {
			struct timex state = { .modes = ADJ_FREQUENCY, .freq = value * 65536 / 1000 };
			if (adjtimex(&state) < 0)
				fail("adjtimex");
		} else {
			uint64_t then_ns = now_ns(CLOCK_REALTIME) + value;
			struct timespec time = { .tv_sec = then_ns / 1000000000, .tv_nsec = then_ns % 1000000000 };
			if (clock_settime(CLOCK_REALTIME, &time))
				fail("clock_settime");
		}
	}
	return NULL;
}

/* Talking. */

static void *hear(void *argument)
{
	char bytes[1 << 16];
	while (read((intptr_t)argument, bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

static void *say(void *argument)
{
	int socket = (intptr_t)argument;
	unsigned short state[3] = { seed, socket, number };
	char bytes[MESSAGE_BYTES] = { 0 };
	for (;;) {
		sleep_us(-log(1 - erand48(state)) / per_s * 1e6);
		if (send(socket, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

static void talk(int socket)
{
	pthread_t thread;
	int one = 1;
	setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	begin(&thread, hear, (void *)(intptr_t)socket);
	begin(&thread, say, (void *)(intptr_t)socket);
}

static struct sockaddr_in address(int low, int high, int own)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	name.sin_addr.s_addr = htonl(10 << 24 | (8 * low + high) << 8 | own);
	return name;
}

static void meet(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, MOST_HOSTS))
		fail("listen");
	for (int peer = 0; peer < number; peer++) {
		struct sockaddr_in name = address(peer, number, 1);
		uint64_t since_ns = now_ns(CLOCK_MONOTONIC);
		for (;;) {
			int socket_of_peer = socket(AF_INET, SOCK_STREAM, 0);
			if (!connect(socket_of_peer, (struct sockaddr *)&name, sizeof(name))) {
				talk(socket_of_peer);
				break;
			}
			close(socket_of_peer);
			if (now_ns(CLOCK_MONOTONIC) - since_ns > PATIENCE_S * 1000000000ULL)
				fail("connect");
			sleep_us(50000);
		}
	}
	for (int peer = number + 1; peer < hosts; peer++) {
		int socket_of_peer = accept(listener, NULL, NULL);
		if (socket_of_peer < 0)
			fail("accept");
		talk(socket_of_peer);
	}
}

int main(int count, char **words)
{
	if (count != 9) {
		fprintf(stderr, "inside: give NUMBER HOSTS SECONDS PER_S SEED MEMORY SCHEDULE OUT\n");
		return 2;
	}
	number = atoi(words[1]);
	hosts = atoi(words[2]);
	seconds = atof(words[3]);
	per_s = atof(words[4]);
	seed = atoi(words[5]);
	out = words[8];
	int memory = open(words[6], O_RDWR);
	lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (memory < 0 || lines == MAP_FAILED)
		fail(words[6]);
	FILE *schedule = fopen(words[7], "r");
	if (!schedule)
		fail(words[7]);
	pthread_t comparing, changing;
	compared = calloc(MOST_COMPARED, sizeof(*compared));
	if (!compared)
		fail("memory");
	meet();
	atomic_store(&lines[number].is_ready, 1);
	for (int peer = 0; peer < hosts; peer++)
		wait_for(&lines[peer].is_ready);
	compare_at_length();
	began_ns = now_ns(CLOCK_MONOTONIC);
	begin(&comparing, compare, NULL);
	begin(&changing, change, schedule);
	read_clocks();
	atomic_store(&lines[number].is_done, 1);
	for (int peer = 0; peer < hosts; peer++)
		wait_for(&lines[peer].is_done);
	is_over = 1;
	pthread_join(comparing, NULL);
	compare_at_length();
	write_out("counters", compared, sizeof(*compared), compared_count);
	/* The others may still be in a call of theirs; they end with the process. */
	return 0;
}
