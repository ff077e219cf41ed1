/*
 * Somebody waits for something that a frozen task holds: three tasks and one resource.
 *
 *   inversion KIND FOLDER ROUNDS holder|waiter|writer [FILE]
 *
 * The writer writes FILE until the waiter is done. The holder takes the resource, and writes FILE until it is wanted,
 * then gives it. The waiter wants it when the holder has not written for a while, so is frozen, and notes what it took
 * to get it, a line of microseconds for each round, in FOLDER/stalls. It fails if the writer was done before.
 *
 * KIND: flock, fcntl, ofd (file locks); sqlite (likewise, which are tried to take again and again, as SQLite does);
 * futex, pipe, socket (the holder wakes the waiter, at first while it does not write, so that it is known to).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Rounds in which the holder does not write. */
#define CALM 16
/* The holder is frozen when it wrote nothing for so long. */
#define STILL_MS 60
/* On a busy machine the holder may have got the turn: this round is for nothing then. */
#define TURN_S 2
/* The holder rests for so long, so that the writer has the turn. */
#define REST_MS 100
/* The writer gives up: what was waited for did not come. */
#define LONGEST_S 40
/* So do the others, later: the holder was never frozen. */
#define ALARM_S 60
#define BYTES 4096

static struct shared {
	unsigned long beat, want, have, got;
	unsigned long started, waiter_done, writer_done;
	unsigned int word;
} *shared;

#define SET(member, value) __atomic_store_n(&shared->member, value, __ATOMIC_SEQ_CST)
#define GET(member) __atomic_load_n(&shared->member, __ATOMIC_SEQ_CST)

static const char *kind, *folder, *file_path;
static int stream = -1, lock_file = -1, out = -1;
static void *buffer;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static int is(const char *name)
{
	return !strcmp(kind, name);
}

static int is_lock(void)
{
	return is("flock") || is("fcntl") || is("ofd") || is("sqlite");
}

static int open_in(const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags, 0600);
	if (fd < 0)
		fail(path);
	return fd;
}

/* The bytes that SQLite locks (os.h): a reader has the shared ones, a writer the reserved one as well. */
#define PENDING 0x40000000
#define RESERVED (PENDING + 1)
#define SHARED_FIRST (PENDING + 2)
#define SHARED_SIZE 510

static int try_range(int type, off_t first, off_t length)
{
	struct flock range = { .l_type = type, .l_start = first, .l_len = length };

	if (!fcntl(lock_file, F_SETLK, &range))
		return 1;
	if (errno != EAGAIN && errno != EACCES)
		fail("F_SETLK");
	return 0;
}

/* As `unixLock` does for a transaction that begins with a write. */
static int try_like_sqlite(void)
{
	int taken = try_range(F_RDLCK, PENDING, 1) && try_range(F_RDLCK, SHARED_FIRST, SHARED_SIZE) &&
		    try_range(F_UNLCK, PENDING, 1) && try_range(F_WRLCK, RESERVED, 1);

	if (!taken)
		try_range(F_UNLCK, 0, 0);
	return taken;
}

/* As `sqliteDefaultBusyCallback` does. */
static void lock_like_sqlite(int take)
{
	static const int delays_ms[] = { 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100 };
	int last = sizeof(delays_ms) / sizeof(*delays_ms) - 1, count = 0;

	if (!take) {
		try_range(F_UNLCK, 0, 0);
		return;
	}
	while (!try_like_sqlite()) {
		usleep(delays_ms[count] * 1000);
		if (count < last)
			count++;
	}
}

static void lock(int take)
{
	struct flock range = { .l_type = take ? F_WRLCK : F_UNLCK };
	int failed;

	if (is("sqlite")) {
		lock_like_sqlite(take);
		return;
	}
	do {
		if (is("flock"))
			failed = flock(lock_file, take ? LOCK_EX : LOCK_UN);
		else
			failed = fcntl(lock_file, is("ofd") ? F_OFD_SETLKW : F_SETLKW, &range);
	} while (failed && errno == EINTR);
	if (failed)
		fail("lock");
}

static void connect_both(int holds)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char path[4096];
	int fd;

	if (is("pipe")) {
		snprintf(path, sizeof(path), "%s/pipe", folder);
		mkfifo(path, 0600);
		stream = open_in("pipe", holds ? O_WRONLY : O_RDONLY);
	} else if (is("socket")) {
		snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (holds) {
			if (bind(fd, (void *)&address, sizeof(address)) || listen(fd, 1))
				fail("listen");
			stream = accept(fd, NULL, NULL);
			return;
		}
		while (connect(fd, (void *)&address, sizeof(address)))
			usleep(1000);
		stream = fd;
	} else if (is_lock()) {
		lock_file = open_in("lock", O_RDWR | O_CREAT);
	}
}

static void give(unsigned long round)
{
	if (is_lock()) {
		lock(0);
	} else if (is("futex")) {
		SET(word, round);
		syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	} else if (write(stream, "x", 1) != 1) {
		fail("write");
	}
}

static void take(unsigned long round)
{
	unsigned int seen;
	char byte;

	if (is_lock()) {
		lock(1);
	} else if (is("futex")) {
		while ((seen = GET(word)) < round)
			syscall(SYS_futex, &shared->word, FUTEX_WAIT, seen, NULL, NULL, 0);
	} else if (read(stream, &byte, 1) != 1) {
		fail("read");
	}
}

static void write_once(void)
{
	static unsigned long at;

	/*
	 * Not before: creating a file reads from the disk, so the holder could be frozen
	 * before it is known to wake the waiter.
	 */
	if (out < 0)
		out = open(file_path, O_WRONLY | O_CREAT | O_DIRECT, 0600);
	if (out < 0)
		fail(file_path);
	if (pwrite(out, buffer, BYTES, at++ % 4096 * BYTES) != BYTES)
		fail("pwrite");
}

static void hold(unsigned long rounds)
{
	unsigned long round;

	while (!GET(started))
		usleep(1000);
	connect_both(1);
	for (round = 1; round <= rounds; round++) {
		if (is_lock())
			lock(1);
		SET(have, round);
		while (GET(want) < round) {
			if (round <= CALM) {
				usleep(200);
			} else {
				write_once();
				SET(beat, GET(beat) + 1);
			}
		}
		give(round);
		while (GET(got) < round)
			usleep(200);
		if (round > CALM)
			usleep(REST_MS * 1000);
	}
}

static void wait_until_frozen(void)
{
	unsigned long beat = GET(beat);
	double begun = now(), since = begun;

	while (now() - since < STILL_MS / 1e3 && now() - begun < TURN_S) {
		usleep(1000);
		if (GET(beat) != beat) {
			beat = GET(beat);
			since = now();
		}
	}
}

static int wait_for_it(unsigned long rounds)
{
	FILE *stalls = fdopen(open_in("stalls", O_WRONLY | O_CREAT | O_TRUNC), "w");
	unsigned long round;
	double begun;

	connect_both(0);
	for (round = 1; round <= rounds; round++) {
		while (GET(have) < round)
			usleep(200);
		if (round > CALM)
			wait_until_frozen();
		else
			usleep(2000);
		begun = now();
		SET(want, round);
		take(round);
		if (round > CALM)
			fprintf(stalls, "%.0f\n", (now() - begun) * 1e6);
		if (is_lock())
			lock(0);
		SET(got, round);
	}
	fclose(stalls);
	rounds = GET(writer_done);
	SET(waiter_done, 1);
	return rounds ? 1 : 0;
}

static void write_on(void)
{
	double begun = now();
	unsigned long writes;

	for (writes = 0; !GET(waiter_done) && now() - begun < LONGEST_S; writes++) {
		write_once();
		if (writes == 100)
			SET(started, 1);
	}
	SET(writer_done, 1);
}

int main(int count, char **words)
{
	unsigned long rounds;
	int fd;

	if (count < 5)
		return 2;
	kind = words[1];
	folder = words[2];
	rounds = CALM + strtoul(words[3], NULL, 10);
	fd = open_in("shared", O_RDWR | O_CREAT);
	if (ftruncate(fd, sizeof(*shared)))
		fail("ftruncate");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED || posix_memalign(&buffer, BYTES, BYTES))
		fail("memory");
	memset(buffer, 1, BYTES);
	file_path = words[5];
	alarm(ALARM_S);
	if (!strcmp(words[4], "holder"))
		hold(rounds);
	else if (!strcmp(words[4], "waiter"))
		return wait_for_it(rounds);
	else
		write_on();
	return 0;
}
