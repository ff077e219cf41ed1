/*
 * The calls of steps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "subject.h"

__thread sigjmp_buf jump;
__thread volatile int may_jump;

/* Of this process. */
static struct program *own;
static int own_process;
static int handler_kinds[2];
static void *maps[MAPS];

static const int signals[2] = { SIGUSR1, SIGALRM };

static const char *name(struct context *context, int file, char *space, size_t size)
{
	if (file == 6)
		return ".";
	if (file == 9)
		return "/dev/null";
	if (file == 10)
		return "/proc/self/status";
	if (file >= 7)
		snprintf(space, size, "%s/p%05d-t%d", batch->other, context->number, file);
	else
		snprintf(space, size, "f%d", file);
	return space;
}

static void fill(struct context *context, uint32_t *cells, int count)
{
	uint32_t stamp = batch->stamp, number = context->number, step = context->at + 1;

	for (int i = 0; i < count * CELL / 16; i++) {
		cells[4 * i] = stamp;
		cells[4 * i + 1] = number;
		cells[4 * i + 2] = step;
		cells[4 * i + 3] = stamp ^ number * 2654435761u ^ step * 40503u;
	}
}

static void handle(int signal)
{
	int kind = handler_kinds[signal == SIGALRM], kept = errno;

	if (kind == 1) {
		int fd = own->process[own_process].slots[own->process[own_process].handler_slot];

		if (fsync(fd)) {
			own->handler_error = errno;
			__atomic_fetch_add(&own->handler_errors, 1, __ATOMIC_SEQ_CST);
		}
	}
	/* The signals stay blocked until the thread is on its own stack again. */
	if (kind == 2 && may_jump) {
		may_jump = 0;
		siglongjmp(jump, 1);
	}
	errno = kept;
}

void unblock_signals(void)
{
	sigset_t both;

	sigemptyset(&both);
	for (int i = 0; i < 2; i++)
		sigaddset(&both, signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &both, NULL);
}

static int64_t set_action(struct process *process, const struct step *step)
{
	struct sigaction action = { .sa_handler = handle };
	int which = step->a & 1;

	if (step->b & 1)
		action.sa_flags |= SA_RESTART;
	if (step->b & 2) {
		action.sa_flags |= SA_ONSTACK;
		/* The small stack has room for one handler. */
		for (int i = 0; i < 2; i++)
			sigaddset(&action.sa_mask, signals[i]);
	}
	handler_kinds[which] = step->c;
	process->handler_slot = step->d;
	process->handled |= 1 << which;
	return sigaction(signals[which], &action, NULL);
}

/* An alternate stack that is as small as it may be, with nothing below it. */
static int64_t set_stack(int more)
{
	size_t page = 4096, size = sysconf(_SC_MINSIGSTKSZ) + 1024 + more;
	size_t whole = (size + page - 1) / page * page;
	char *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	stack_t stack;

	if (memory == MAP_FAILED)
		return -1;
	mprotect(memory, page, PROT_NONE);
	stack = (stack_t){ .ss_sp = memory + page, .ss_size = size };
	return sigaltstack(&stack, NULL);
}

static int64_t send_signals(struct program *program, const struct step *step)
{
	struct actor *actor = &program->actors[step->a];
	int64_t failed = 0;

	if (!actor->alive || !(program->process[actor->process].handled & 1 << (step->b & 1)))
		return -2;
	for (int i = 0; i < step->c; i++) {
		if (raw(SYS_tgkill, actor->pid, actor->tid, signals[step->b & 1], 0, 0, 0))
			failed++;
		pause_ns(step->d * 1000ull);
	}
	return failed;
}

static int read_number(void *about, char *text)
{
	*(unsigned long *)about = strtoul(text, NULL, 10);
	return 1;
}

static int64_t set_limit(const struct step *step)
{
	struct rlimit limit = { .rlim_cur = step->b };
	int which = step->a == 0 ? RLIMIT_NOFILE : step->a == 1 ? RLIMIT_FSIZE : RLIMIT_AS;

	getrlimit(which, &limit);
	limit.rlim_cur = step->b;
	if (step->a == 1) {
		signal(SIGXFSZ, SIG_IGN);
		limit.rlim_cur = (rlim_t)step->b * CELL;
	}
	if (step->a == 2) {
		unsigned long pages = 0;

		read_apart("/proc/self/statm", read_number, &pages);
		limit.rlim_cur = pages * 4096 + step->b;
	}
	return setrlimit(which, &limit);
}

static int64_t special(int kind)
{
	int both[2] = { -1, -1 }, keep;

	switch (kind) {
	case 0:
	case 1:
		if (pipe(both))
			return -1;
		keep = kind;
		close(both[!keep]);
		return both[keep];
	case 2:
		return socket(AF_UNIX, SOCK_STREAM, 0);
	case 3:
		return eventfd(0, 0);
	case 4:
		return memfd_create("m", 0);
	default:
		return epoll_create1(0);
	}
}

static int flags_of(int bits)
{
	return (bits & 1 ? O_RDONLY : O_RDWR) | (bits & 2 ? O_CREAT : 0) |
	       (bits & 4 ? O_TRUNC : 0) | (bits & 8 ? O_DSYNC : 0) | (bits & 16 ? O_APPEND : 0) |
	       (bits & 32 ? O_CLOEXEC : 0) | (bits & 64 ? O_PATH : 0) | (bits & 128 ? O_EXCL : 0) |
	       (bits & 256 ? O_SYNC : 0);
}

static int64_t kept(long result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

static int64_t store(void *map, int cell, uint32_t *cells)
{
	struct iovec from = { cells, CELL }, to = { (char *)map + cell * CELL, CELL };

	if (!map)
		return -2;
	/* Beyond a file's end it is an error and no signal. */
	return process_vm_writev(getpid(), &from, 1, &to, 1, 0);
}

int64_t call(struct context *context, const struct step *step, struct result *result)
{
	struct program *program = context->program;
	struct process *process = &program->process[program->actors[context->actor].process];
	int *slot = &process->slots[step->a & (SLOTS - 1)];
	uint32_t cells[MAP_CELLS * CELL / 4];
	char one[NAMES + 64], two[NAMES + 64];
	struct itimerval timer = { 0 };
	struct iovec vector;
	int64_t value;

	own = program;
	own_process = program->actors[context->actor].process;
	switch ((enum op)step->op) {
	case OP_OPEN:
		value = open(name(context, step->b, one, sizeof(one)), flags_of(step->c), 0600);
		if (value >= 0)
			*slot = value;
		return value;
	case OP_SPECIAL:
		value = special(step->b);
		if (value >= 0)
			*slot = value;
		return value;
	case OP_WRITE:
		fill(context, cells, step->b);
		return write(*slot, cells, step->b * CELL);
	case OP_PWRITE:
		fill(context, cells, step->c);
		vector = (struct iovec){ cells, step->c * CELL };
		return pwritev2(*slot, &vector, 1, step->b * CELL, step->d ? RWF_DSYNC : 0);
	case OP_TRUNCATE:
		return ftruncate(*slot, step->b * CELL);
	case OP_ALLOCATE:
		return fallocate(*slot, step->b ? FALLOC_FL_KEEP_SIZE : 0, 0, step->c * CELL);
	case OP_RENAME:
		return rename(name(context, step->a, one, sizeof(one)),
			      name(context, step->b, two, sizeof(two)));
	case OP_LINK:
		return link(name(context, step->a, one, sizeof(one)),
			    name(context, step->b, two, sizeof(two)));
	case OP_UNLINK:
		return unlink(name(context, step->a, one, sizeof(one)));
	case OP_FSYNC:
		if (batch->lie && context->number % batch->lie == 0)
			return 0;
		if (step->b == 1)
			return kept(raw(SYS_fsync, *slot, 0, 0, 0, 0, 0));
		return step->b == 2 ? syscall(SYS_fsync, *slot) : fsync(*slot);
	case OP_FDATASYNC:
		if (step->b == 1)
			return kept(raw(SYS_fdatasync, *slot, 0, 0, 0, 0, 0));
		return step->b == 2 ? syscall(SYS_fdatasync, *slot) : fdatasync(*slot);
	case OP_SYNCFS:
		return batch->no_syncfs ? -2 : syncfs(*slot);
	case OP_RANGE:
		return sync_file_range(*slot, 0, 0, step->b);
	case OP_FSYNC_NUMBER:
		return step->b ? fdatasync(step->a) : fsync(step->a);
	case OP_CLOSE:
		return close(*slot);
	case OP_DUP:
		value = dup(*slot);
		if (value >= 0)
			process->slots[step->b & (SLOTS - 1)] = value;
		return value;
	case OP_DUP2:
		return dup2(*slot, process->slots[step->b & (SLOTS - 1)]);
	case OP_MAP:
		if (maps[step->b & 1])
			return -2;
		maps[step->b & 1] =
			mmap(NULL, MAP_CELLS * CELL, PROT_READ | PROT_WRITE, MAP_SHARED, *slot, 0);
		if (maps[step->b & 1] != MAP_FAILED)
			return 0;
		maps[step->b & 1] = NULL;
		return -1;
	case OP_STORE:
		fill(context, cells, 1);
		return store(maps[step->a & 1], step->b, cells);
	case OP_MSYNC:
		return maps[step->a & 1] ? msync(maps[step->a & 1], MAP_CELLS * CELL, step->b) : -2;
	case OP_UNMAP:
		if (!maps[step->a & 1])
			return -2;
		value = munmap(maps[step->a & 1], MAP_CELLS * CELL);
		maps[step->a & 1] = NULL;
		return value;
	case OP_SPAWN:
		return program->actors[step->a].tid ? -2 : spawn(context, step->a);
	case OP_FORK:
		return program->actors[step->a].tid ? -2 : fork_actor(context, step->a);
	case OP_VFORK_SYNC:
		return vfork_sync(*slot, result);
	case OP_SPAWN_SYNC:
		return spawn_sync(*slot);
	case OP_WAIT:
		return wait_for(program, step->a);
	case OP_EXEC:
		return execute(context);
	case OP_ACTION:
		return set_action(process, step);
	case OP_STACK:
		return set_stack(step->a);
	case OP_KILL:
		return send_signals(program, step);
	case OP_TIMER:
		if (!(process->handled & 2))
			return -2;
		timer.it_value.tv_usec = timer.it_interval.tv_usec = step->a;
		return setitimer(ITIMER_REAL, &timer, NULL);
	case OP_SETTLE:
		settle(program, step->a, result);
		pause_ns(step->b * 1000ull);
		return 0;
	case OP_JOIN:
		await(program, step->a);
		return 0;
	case OP_CANCEL:
		return cancel(context, step->a);
	case OP_CANCEL_STATE:
		return -pthread_setcancelstate(
			step->a ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, NULL);
	case OP_CLEANUP:
		cleanup_slot = *slot;
		return 0;
	case OP_LIMIT:
		return set_limit(step);
	case OP_END:
		if (program->actors[context->actor].tid == program->actors[context->actor].pid)
			return -2;
		result->progress = DONE;
		program->actors[context->actor].alive = 0;
		advance(program, context->at);
		pthread_exit(NULL);
	case OP_EXIT:
		leave(context, step);
		return -1;
	case OP_KILL_PROCESS:
		value = program->actors[step->a].process;
		if (!program->actors[step->a].alive || value == 0 ||
		    value == program->actors[context->actor].process)
			return -2;
		value = program->actors[step->a].pid;
		mark_absent(program, program->actors[step->a].process);
		return kill(value, SIGKILL);
	}
	return -2;
}
