/*
 * Actors are threads and processes that take turns: a step begins when the one before has ended,
 * or, of an asynchronous one, when its call is about to begin.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "subject.h"

__thread int cleanup_slot = -1;
extern __thread sigjmp_buf jump;
extern __thread volatile int may_jump;

static pthread_t threads[ACTORS];

/* Neither a cancellation point nor a symbol that a library can interpose. */
long raw(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#endif
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void pause_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	while (raw(SYS_nanosleep, (long)&left, (long)&left, 0, 0, 0, 0) == -EINTR)
		;
}

static void wait_while(uint32_t *word, uint32_t value)
{
	struct timespec limit = { .tv_nsec = 100000000 };

	raw(SYS_futex, (long)word, FUTEX_WAIT, value, (long)&limit, 0, 0);
}

void wake(uint32_t *word)
{
	raw(SYS_futex, (long)word, FUTEX_WAKE, 1 << 20, 0, 0, 0);
}

/* Hands the turn to the next step whose actor lives. Only who has the turn may. */
void advance(struct program *program, int at)
{
	uint32_t next = at + 1;

	while (next < program->steps && !program->actors[program->step[next].actor].alive)
		program->result[next++].progress = SKIPPED;
	__atomic_store_n(&program->turn, next, __ATOMIC_SEQ_CST);
	wake(&program->turn);
}

void mark_absent(struct program *program, int process)
{
	for (int i = 0; i < ACTORS; i++)
		if (program->actors[i].alive && program->actors[i].process == process)
			program->actors[i].alive = 0;
}

/* Whether the turn came. */
static int await_turn(struct program *program, int actor, uint32_t at)
{
	for (;;) {
		uint32_t turn = __atomic_load_n(&program->turn, __ATOMIC_SEQ_CST);

		if (program->over || !program->actors[actor].alive)
			return 0;
		if (turn == at)
			return 1;
		if (turn > at)
			return 0;
		wait_while(&program->turn, turn);
	}
}

void await(struct program *program, int actor)
{
	for (;;) {
		uint32_t pending =
			__atomic_load_n(&program->actors[actor].pending, __ATOMIC_SEQ_CST);

		if (!pending || program->over || !program->actors[actor].alive)
			return;
		wait_while((uint32_t *)&program->actors[actor].pending, pending);
	}
}

void await_all(struct program *program, int process)
{
	for (int i = 0; i < ACTORS; i++)
		if (process < 0 || program->actors[i].process == process)
			await(program, i);
}

/*
 * Looks at a file of /proc until `look` is content, in a child that shares memory but has
 * descriptors of its own: the program's numbers stay as they are, whatever their limit.
 */
void read_apart(const char *path, int (*look)(void *about, char *text), void *about)
{
	pid_t child = vfork();

	if (child == 0) {
		char text[512];
		long fd, length;

		raw(SYS_close_range, 0, BATCH_FD - 1, 0, 0, 0, 0);
		fd = raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY, 0, 0, 0);
		do {
			length = raw(SYS_pread64, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
			text[length > 0 ? length : 0] = 0;
		} while (length > 0 && !look(about, text));
		raw(SYS_exit, 0, 0, 0, 0, 0, 0);
	}
	while (child > 0 && raw(SYS_wait4, child, 0, 0, 0, 0, 0) == -EINTR)
		;
}

struct watch {
	struct actor *actor;
	struct result *result;
	uint64_t end_ns;
};

static int sleeps(void *about, char *text)
{
	struct watch *watch = about;
	const char *state = strrchr(text, ')');

	if (!__atomic_load_n(&watch->actor->pending, __ATOMIC_SEQ_CST) || now_ns() > watch->end_ns)
		return 1;
	if (state && (state[2] == 'S' || state[2] == 'D')) {
		watch->result->second = 1;
		return 1;
	}
	pause_ns(50000);
	return 0;
}

/* Waits until an actor's call sleeps in the kernel (1), or has ended (2). So it has begun, whoever
 * makes it wait. */
void settle(struct program *program, int actor, struct result *result)
{
	struct actor *other = &program->actors[actor];
	struct watch watch = { other, result, now_ns() + 5000000000ull };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", other->pid, other->tid);
	if (__atomic_load_n(&other->pending, __ATOMIC_SEQ_CST))
		read_apart(path, sleeps, &watch);
	if (!__atomic_load_n(&other->pending, __ATOMIC_SEQ_CST))
		result->second = 2;
}

static void clean_up(void *unused)
{
	(void)unused;
	if (cleanup_slot >= 0)
		fsync(cleanup_slot);
}

static void take_steps(struct program *program, int number, int actor, int from)
{
	struct context context = { .program = program, .number = number, .actor = actor };
	volatile int at;

	for (at = from; at < (int)program->steps; at++) {
		struct step *step = &program->step[at];
		struct result *volatile result = &program->result[at];
		int64_t value;

		if (step->actor != actor)
			continue;
		if (!await_turn(program, actor, at))
			return;
		context.at = at;
		result->progress = BEGUN;
		result->begun_ns = now_ns();
		if (step->flags & ASYNC) {
			__atomic_store_n(&program->actors[actor].pending, at + 1, __ATOMIC_SEQ_CST);
			advance(program, at);
			if (sigsetjmp(jump, 0)) {
				may_jump = 0;
				unblock_signals();
				result->unused = 1;
				goto called;
			}
			may_jump = 1;
		}
		errno = 0;
		value = call(&context, step, result);
		result->error = errno;
		may_jump = 0;
		if (value >= 0)
			result->error = 0;
		result->value = value;
	called:
		result->ended_ns = now_ns();
		__atomic_store_n(&result->progress, DONE, __ATOMIC_SEQ_CST);
		if (program->step[at].flags & ASYNC) {
			__atomic_store_n(&program->actors[actor].pending, 0, __ATOMIC_SEQ_CST);
			wake((uint32_t *)&program->actors[actor].pending);
		} else {
			advance(program, at);
		}
	}
	/* The end is everybody's. */
	while (!program->over && program->actors[actor].alive && program->turn < program->steps)
		wait_while(&program->turn, program->turn);
}

/* A first thread's end would be that of its process, which another thread is about to replace or to
 * end. */
static void await_end(struct program *program, int actor)
{
	struct actor *own = &program->actors[actor];

	while (!own->alive && !program->over && own->tid == own->pid)
		wait_while(&program->over, 0);
}

void run_actor(struct program *program, int number, int actor, int from)
{
	program->actors[actor].pid = getpid();
	__atomic_store_n(&program->actors[actor].tid, raw(SYS_gettid, 0, 0, 0, 0, 0, 0),
			 __ATOMIC_SEQ_CST);
	wake((uint32_t *)&program->actors[actor].tid);
	take_steps(program, number, actor, from);
	await_end(program, actor);
}

struct start {
	struct program *program;
	int number, actor, from;
};

static void *begin(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	pthread_cleanup_push(clean_up, NULL);
	run_actor(start.program, start.number, start.actor, start.from);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

int64_t spawn(struct context *context, int actor)
{
	struct program *program = context->program;
	struct start *start = malloc(sizeof(*start));
	pthread_attr_t attributes;
	int error;

	*start = (struct start){ program, context->number, actor, context->at + 1 };
	program->actors[actor] =
		(struct actor){ .alive = 1, .process = program->actors[context->actor].process };
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	error = pthread_create(&threads[actor], &attributes, begin, start);
	if (error) {
		program->actors[actor].alive = 0;
		free(start);
		errno = error;
		return -1;
	}
	while (!__atomic_load_n(&program->actors[actor].tid, __ATOMIC_SEQ_CST))
		wait_while((uint32_t *)&program->actors[actor].tid, 0);
	return 0;
}

/* 1 if the thread was canceled, 0 if it returned. */
int64_t cancel(struct context *context, int actor)
{
	struct program *program = context->program;
	void *returned = NULL;

	if (!program->actors[actor].alive || program->actors[actor].pid != getpid() ||
	    actor == context->actor || program->actors[actor].tid == program->actors[actor].pid)
		return -2;
	pthread_cancel(threads[actor]);
	program->actors[actor].alive = 0;
	wake(&program->turn);
	pthread_join(threads[actor], &returned);
	return returned == PTHREAD_CANCELED;
}
