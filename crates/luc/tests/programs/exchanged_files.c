/*
 * Cases of caller in which a descriptor gets another file while its call is held.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "caller.h"

struct sync_call {
	int fd;
	atomic_int thread;
	int result;
	int error;
};

static void *make_sync_call(void *argument)
{
	struct sync_call *call = argument;

	atomic_store(&call->thread, (int)syscall(SYS_gettid));
	call->result = fsync(call->fd);
	call->error = errno;
	atomic_store(&call->thread, 0);
	return NULL;
}

/* Whether a thread sleeps in a futex, so that its call has not reached the kernel's fsync. */
static int is_held(int thread)
{
	char path[64], text[16] = "";
	int number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fgets(text, sizeof(text), file))
		sscanf(text, "%d", &number);
	fclose(file);
	return number == SYS_futex;
}

/* A descriptor that another thread closes, or gives to another file, while its call is held: never success. */
int case_exchange(void)
{
	int other = new_file("exchange-other"), closes, held;

	for (closes = 0; closes < 2; closes++) {
		struct sync_call call = { .fd = new_file("exchange") };
		pthread_t thread;
		int number;

		CHECK(write(call.fd, "important", 9) == 9);
		CHECK(pthread_create(&thread, NULL, make_sync_call, &call) == 0);
		while ((number = atomic_load(&call.thread)) == 0 && call.result == 0 && !call.error)
			sched_yield();
		while (atomic_load(&call.thread) && !is_held(number))
			sched_yield();
		if (closes)
			CHECK(close(call.fd) == 0);
		else
			CHECK(dup2(other, call.fd) == call.fd);
		held = atomic_load(&call.thread) && is_held(number);
		CHECK(pthread_join(thread, NULL) == 0);
		if (held)
			CHECK(call.result == -1 && call.error == EBADF);
		if (!closes)
			close(call.fd);
	}
	return 0;
}

/* A process of one thread whose signal handler gives the descriptor's number to another file. */
static int exchanged_fd, other_fd;
static volatile sig_atomic_t has_ended_a_sleep;

static void exchange_in_handler(int signal, siginfo_t *info, void *state)
{
	const mcontext_t *context = &((ucontext_t *)state)->uc_mcontext;
	int saved = errno;

	(void)signal;
	(void)info;
#ifdef __x86_64__
	has_ended_a_sleep = context->gregs[REG_RAX] == -EINTR;
#else
	has_ended_a_sleep = (long)context->regs[0] == -EINTR;
#endif
	dup2(other_fd, exchanged_fd);
	errno = saved;
}

int case_exchange_in_handler(void)
{
	struct sigaction action = { .sa_sigaction = exchange_in_handler, .sa_flags = SA_SIGINFO };
	struct itimerval soon = { { 0, 0 }, { 0, 1500 } }, never = { { 0, 0 }, { 0, 0 } };
	int round, result;

	other_fd = new_file("handler-other");
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	for (round = 0; round < 20; round++) {
		exchanged_fd = new_file("handler-exchange");
		CHECK(write(exchanged_fd, "important", 9) == 9);
		has_ended_a_sleep = 0;
		CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
		result = fsync(exchanged_fd);
		if (has_ended_a_sleep)
			CHECK(result == -1 && errno == EBADF);
		CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
		close(exchanged_fd);
	}
	return 0;
}

/* Number of transactions that the journal of the open file has committed. */
static long committed(int fd)
{
	struct stat status;
	char path[64], device[256], *name;
	long transactions = -1;
	ssize_t length;
	FILE *info;

	CHECK(fstat(fd, &status) == 0);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(status.st_dev),
		 minor(status.st_dev));
	length = readlink(path, device, sizeof(device) - 1);
	CHECK(length > 0);
	device[length] = 0;
	name = strrchr(device, '/') + 1;
	snprintf(path, sizeof(path), "/proc/fs/jbd2/%.32s-8/info", name);
	info = fopen(path, "r");
	CHECK(info && fscanf(info, "%ld", &transactions) == 1);
	fclose(info);
	return transactions;
}

static void sleep_ms(int ms)
{
	struct timespec time = { 0, ms * 1000000 };

	CHECK(nanosleep(&time, NULL) == 0);
}

/* A child with the same descriptors, which gives the number to another file and puts it back. */
static volatile atomic_int *has_written;
static int kept_fd, back_after_ms;

static int exchange_and_put_back(void *unused)
{
	(void)unused;
	while (!atomic_load(has_written))
		sched_yield();
	sleep_ms(1);
	CHECK(dup2(other_fd, exchanged_fd) == exchanged_fd);
	sleep_ms(back_after_ms);
	CHECK(dup2(kept_fd, exchanged_fd) == exchanged_fd);
	return 0;
}

/* Success without a commit says nothing about a file that was written before. */
int case_exchange_and_back(void)
{
	const size_t stack_size = 1 << 16;
	char *stack = malloc(stack_size);
	int round, result, error, status;
	pid_t child;
	long before;

	has_written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(stack && has_written != MAP_FAILED);
	other_fd = new_file("back-other");
	kept_fd = new_file("back-kept");
	exchanged_fd = dup(kept_fd);
	CHECK(fsync(kept_fd) == 0 && fsync(other_fd) == 0);
	for (round = 0; round < 16; round++) {
		atomic_store(has_written, 0);
		back_after_ms = 1 + round;
		child = clone(exchange_and_put_back, stack + stack_size, CLONE_FILES | SIGCHLD, NULL);
		CHECK(child > 0);
		CHECK(write(kept_fd, "important", 9) == 9);
		before = committed(kept_fd);
		atomic_store(has_written, 1);
		result = fsync(exchanged_fd);
		error = errno;
		/* The journal counts a commit after it has woken who waits for it. */
		if (result == 0 && committed(kept_fd) == before)
			sleep_ms(5);
		CHECK(result == -1 || committed(kept_fd) > before);
		CHECK(result == 0 || error == EBADF);
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	return 0;
}
