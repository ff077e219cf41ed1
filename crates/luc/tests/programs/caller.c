/*
 * A program that synchronizes files in ways that are hard on an interposing library. Run under
 * `luc run` by gate.rs; each case prints nothing and exits with 0, or says what is wrong and exits
 * with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"

static const char *self;

int new_file(const char *name)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);

	CHECK(fd >= 0);
	return fd;
}

static void write_and_sync(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
	CHECK(fsync(fd) == 0);
}

/* The first call on a file system is always ungated: get it over with. */
static void join_file_system(void)
{
	int fd = new_file("first");

	write_and_sync(fd);
	close(fd);
}

/* Errors and errno are those of the real calls; success leaves errno alone. */
static int case_errors(void)
{
	int pipe_fds[2], fd = new_file("errors"), i;

	for (i = 0; i < 3; i++) {
		errno = 0;
		CHECK(fsync(-1) == -1 && errno == EBADF);
		CHECK(fdatasync(12345) == -1 && errno == EBADF);
		CHECK(pipe(pipe_fds) == 0);
		CHECK(fsync(pipe_fds[0]) == -1 && errno == EINVAL);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		errno = 4711;
		CHECK(write(fd, "x", 1) == 1 && fsync(fd) == 0);
		CHECK(errno == 4711);
		CHECK(fdatasync(fd) == 0 && errno == 4711);
	}
	return 0;
}

/* msync of a mapped file; of memory that is no file's; of nothing. */
static int case_msync(void)
{
	int fd = new_file("mapped"), i;
	size_t size = 1 << 16;
	char *map, *anonymous;

	CHECK(ftruncate(fd, size) == 0);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	anonymous = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(anonymous != MAP_FAILED);
	for (i = 0; i < 20; i++) {
		map[i * 1000] = 'x';
		CHECK(msync(map, size, MS_SYNC) == 0);
		CHECK(msync(map, size, MS_ASYNC) == 0);
	}
	CHECK(msync(anonymous, size, MS_SYNC) == 0);
	CHECK(munmap(map, size) == 0);
	CHECK(msync(map, size, MS_SYNC) == -1 && errno == ENOMEM);
	return 0;
}

/* A child of fork, of a threaded process and of vfork, takes part or stays out, but returns. */
static void *sync_often(void *name)
{
	int fd = new_file(name), i;

	for (i = 0; i < 30; i++)
		write_and_sync(fd);
	return NULL;
}

static int case_fork(void)
{
	pthread_t thread;
	int i, status;

	CHECK(pthread_create(&thread, NULL, sync_often, "beside") == 0);
	for (i = 0; i < 8; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			char name[32];

			snprintf(name, sizeof(name), "child%d", i);
			sync_often(name);
			_exit(0);
		}
	}
	for (i = 0; i < 8; i++)
		CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}

static int case_vfork(void)
{
	int fd = new_file("vfork"), i, status;

	for (i = 0; i < 10; i++) {
		pid_t pid = vfork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(fsync(fd) == 0 ? 0 : 1);
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 0);
		write_and_sync(fd);
	}
	return 0;
}

static int case_exec(void)
{
	int i, status;

	for (i = 0; i < 5; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			execl(self, self, "errors", NULL);
			_exit(1);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 0);
	}
	return 0;
}

/* A cancelled thread ends at its fsync, with its clean-up handler run; the others go on. */
static atomic_int cleaned;

static void clean_up(void *unused)
{
	(void)unused;
	atomic_fetch_add(&cleaned, 1);
}

static void *sync_forever(void *name)
{
	pthread_cleanup_push(clean_up, NULL);
	for (int fd = new_file(name);;) {
		if (fsync(fd))
			break;
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static int case_cancel(void)
{
	pthread_t threads[4], survivor;
	char names[4][16];
	int round, i;

	CHECK(pthread_create(&survivor, NULL, sync_often, "survivor") == 0);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 4; i++) {
			snprintf(names[i], sizeof(names[i]), "cancel%d", i);
			CHECK(pthread_create(&threads[i], NULL, sync_forever, names[i]) == 0);
		}
		usleep(3000 + 1000 * round);
		for (i = 0; i < 4; i++)
			CHECK(pthread_cancel(threads[i]) == 0);
		for (i = 0; i < 4; i++) {
			void *result;

			CHECK(pthread_join(threads[i], &result) == 0);
			CHECK(result == PTHREAD_CANCELED);
		}
	}
	CHECK(atomic_load(&cleaned) == 40);
	CHECK(pthread_join(survivor, NULL) == 0);
	return 0;
}

/* A signal handler that synchronizes while its thread is inside the gate. */
static int handler_fd;
static atomic_int handled;

static void sync_in_handler(int signal)
{
	int saved = errno;

	(void)signal;
	if (fsync(handler_fd) == 0)
		atomic_fetch_add(&handled, 1);
	errno = saved;
}

static int case_handler(void)
{
	struct sigaction action = { .sa_handler = sync_in_handler, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 45000 }, { 0, 45000 } }, never = { { 0, 0 }, { 0, 0 } };
	int fd = new_file("handler"), i;

	handler_fd = new_file("handled");
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	for (i = 0; i < 50; i++)
		write_and_sync(fd);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(atomic_load(&handled) > 0);
	return 0;
}

/* A handler that jumps out of the gate: the thread goes on, with direct calls. */
static sigjmp_buf out;

static void jump_out(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static int case_jump(void)
{
	struct sigaction action = { .sa_handler = jump_out };
	struct itimerval once = { { 0, 0 }, { 0, 3000 } };
	int fd = new_file("jump"), i;

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	for (i = 0; i < 10; i++) {
		if (sigsetjmp(out, 1) == 0) {
			CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
			for (;;)
				write_and_sync(fd);
		}
	}
	write_and_sync(fd);
	return 0;
}

/* Threads that end while others wait for them. */
static void *sync_once(void *name)
{
	int fd = new_file(name);

	write_and_sync(fd);
	close(fd);
	return NULL;
}

static int case_threads(void)
{
	pthread_t threads[32];
	char names[32][16];
	int round, i;

	for (round = 0; round < 10; round++) {
		for (i = 0; i < 32; i++) {
			snprintf(names[i], sizeof(names[i]), "thread%d", i);
			CHECK(pthread_create(&threads[i], NULL, sync_once, names[i]) == 0);
		}
		for (i = 0; i < 32; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
	return 0;
}

/*
 * Synchronizes until killed, and counts the calls that took longer than argv[2] milliseconds in a file
 * that the killer reads: one line "calls slow" each time.
 */
static int case_worker(const char *name, const char *limit_ms)
{
	double limit_s = atof(limit_ms) / 1e3;
	int fd = new_file(name);
	unsigned long calls = 0, slow = 0;
	struct timespec begin, end;
	char path[64], line[64];
	int figures;

	snprintf(path, sizeof(path), "%s.figures", name);
	figures = new_file(path);
	for (;;) {
		CHECK(write(fd, "x", 1) == 1);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		CHECK(fsync(fd) == 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		calls++;
		if (end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9 > limit_s)
			slow++;
		snprintf(line, sizeof(line), "%20lu %20lu\n", calls, slow);
		CHECK(pwrite(figures, line, strlen(line), 0) > 0);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} cases[] = {
		{ "errors", case_errors },   { "msync", case_msync },
		{ "fork", case_fork },	     { "vfork", case_vfork },
		{ "exec", case_exec },	     { "cancel", case_cancel },
		{ "handler", case_handler }, { "jump", case_jump },
		{ "threads", case_threads }, { "exchange", case_exchange },
		{ "exchange_in_handler", case_exchange_in_handler },
		{ "exchange_and_back", case_exchange_and_back },
	};
	size_t i;

	self = argv[0];
	if (argc == 4 && !strcmp(argv[1], "worker"))
		return case_worker(argv[2], argv[3]);
	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(argv[1], cases[i].name)) {
			join_file_system();
			return cases[i].run();
		}
	}
	fprintf(stderr, "usage: caller CASE | caller worker FILE LIMIT_MS\n");
	return 2;
}
