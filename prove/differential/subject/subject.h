/*
 * Programs as data: what the interpreter and the fuzzer share. The layout is also in
 * ../src/layout.rs.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include <stdint.h>

#define MAGIC 0x4c554344u
#define ACTORS 8
#define SLOTS 16
#define STEPS 64
#define MAPS 2
#define NAMES 512
#define CELL 512
/* What is mapped of a file: more than any has. */
#define MAP_CELLS 16
/* The batch's descriptor, and the only one of the interpreter's own. */
#define BATCH_FD 200

#define ASYNC 1

enum op {
	OP_OPEN,
	OP_SPECIAL,
	OP_WRITE,
	OP_PWRITE,
	OP_TRUNCATE,
	OP_ALLOCATE,
	OP_RENAME,
	OP_LINK,
	OP_UNLINK,
	OP_FSYNC,
	OP_FDATASYNC,
	OP_SYNCFS,
	OP_RANGE,
	OP_FSYNC_NUMBER,
	OP_CLOSE,
	OP_DUP,
	OP_DUP2,
	OP_MAP,
	OP_STORE,
	OP_MSYNC,
	OP_UNMAP,
	OP_SPAWN,
	OP_FORK,
	OP_VFORK_SYNC,
	OP_SPAWN_SYNC,
	OP_WAIT,
	OP_EXEC,
	OP_ACTION,
	OP_STACK,
	OP_KILL,
	OP_TIMER,
	OP_SETTLE,
	OP_JOIN,
	OP_CANCEL,
	OP_CANCEL_STATE,
	OP_CLEANUP,
	OP_LIMIT,
	OP_END,
	OP_EXIT,
	OP_KILL_PROCESS,
};

enum progress { NONE, BEGUN, DONE, SKIPPED };

struct step {
	uint8_t op, actor, flags, unused;
	int32_t a, b, c, d;
};

struct result {
	int64_t value;
	int32_t error;
	uint32_t progress;
	uint64_t begun_ns, ended_ns;
	/* A second answer, of a child or a handler. */
	int32_t second, unused;
};

struct actor {
	/* 1 from the step that starts it to the one that ends it. */
	int32_t alive;
	int32_t process, pid, tid;
	/* The step, counted from 1, whose call is under way. */
	int32_t pending;
	int32_t unused;
};

struct process {
	int32_t slots[SLOTS];
	/* Signals with a handler, as bits. */
	uint32_t handled;
	int32_t handler_slot;
};

struct program {
	uint32_t steps, turn, over, hung;
	int32_t status, processes, handler_errors, handler_error;
	struct actor actors[ACTORS];
	struct process process[ACTORS];
	struct step step[STEPS];
	struct result result[STEPS];
};

struct batch {
	uint32_t magic, programs, width;
	/* It begins when this is 1, and ends at once if it was so from the beginning. */
	uint32_t go;
	/* Of the cells that this batch writes. */
	uint32_t stamp, warm, lie;
	/* Whether syncfs is left out: it would keep everybody's promises. */
	uint32_t no_syncfs;
	/* Whether all programs are over; it ends when `go` is 2. */
	uint32_t is_over;
	/* Processes that write and synchronize all the time, so that others are waited for. */
	uint32_t companions;
	char folder[NAMES], other[NAMES];
	struct program program[];
};

/* calls.c */
struct context {
	struct program *program;
	int number, actor, at;
};

extern struct batch *batch;
extern char **environment;

/* Makes the call of a step, whose result is written down by run_actor(). */
int64_t call(struct context *context, const struct step *step, struct result *result);

/* processes.c */
int64_t fork_actor(struct context *context, int actor);
int64_t vfork_sync(int fd, struct result *result);
int64_t spawn_sync(int fd);
int64_t wait_for(struct program *program, int actor);
int64_t execute(struct context *context);
void leave(struct context *context, const struct step *step);

/* actors.c */
long raw(long number, long a, long b, long c, long d, long e, long f);
void pause_ns(uint64_t ns);
void unblock_signals(void);
uint64_t now_ns(void);
void wake(uint32_t *word);
void advance(struct program *program, int at);
void mark_absent(struct program *program, int process);
void read_apart(const char *path, int (*look)(void *about, char *text), void *about);
void settle(struct program *program, int actor, struct result *result);
void await(struct program *program, int actor);
/* The calls of all actors of a process; of -1, of all. */
void await_all(struct program *program, int process);
/* The calls of an actor up to its end, from a step on. */
void run_actor(struct program *program, int number, int actor, int from);
int64_t spawn(struct context *context, int actor);
int64_t cancel(struct context *context, int actor);

extern __thread int cleanup_slot;

#endif
