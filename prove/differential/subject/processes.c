/*
 * Steps that begin and end processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subject.h"

int64_t fork_actor(struct context *context, int actor)
{
	struct program *program = context->program;
	int process = program->processes;
	pid_t child;

	if (process >= ACTORS)
		return -2;
	program->processes++;
	program->process[process] = program->process[program->actors[context->actor].process];
	program->actors[actor] = (struct actor){ .alive = 1, .process = process };
	child = fork();
	if (child < 0) {
		program->actors[actor].alive = 0;
		return -1;
	}
	if (child == 0) {
		run_actor(program, context->number, actor, context->at + 1);
		await_all(program, process);
		_exit(0);
	}
	program->actors[actor].pid = child;
	while (!__atomic_load_n(&program->actors[actor].tid, __ATOMIC_SEQ_CST) && !program->over)
		pause_ns(20000);
	return 0;
}

int64_t vfork_sync(int fd, struct result *result)
{
	int status = 0;
	pid_t child = vfork();

	if (child == 0) {
		result->second = fsync(fd) ? errno : 0;
		_exit(0);
	}
	if (child < 0)
		return -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

int64_t spawn_sync(int fd)
{
	char number[16];
	char *words[] = { "subject", "--sync", number, NULL };
	int status = 0, error;
	pid_t child;

	snprintf(number, sizeof(number), "%d", fd);
	error = posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environment);
	if (error) {
		errno = error;
		return -1;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

int64_t wait_for(struct program *program, int actor)
{
	int status = 0;
	pid_t result;

	if (!program->actors[actor].pid || program->actors[actor].pid == getpid())
		return -2;
	/* It would wait for its turn for ever. */
	if (program->actors[actor].alive)
		return -2;
	do
		result = waitpid(program->actors[actor].pid, &status, 0);
	while (result < 0 && errno == EINTR);
	return result < 0 ? -1 : status;
}

int64_t execute(struct context *context)
{
	struct program *program = context->program;
	int process = program->actors[context->actor].process;
	struct itimerval none = { 0 };
	char number[16], actor[16], at[16];
	char *words[] = { "subject", "--continue", number, actor, at, NULL };

	/* Other threads end with it, and so do handlers. */
	for (int i = 0; i < ACTORS; i++)
		if (i != context->actor && program->actors[i].alive &&
		    program->actors[i].process == process)
			program->actors[i].alive = 0;
	setitimer(ITIMER_REAL, &none, NULL);
	/* One that is pending would end the next program. */
	signal(SIGALRM, SIG_IGN);
	program->process[process].handled = 0;
	snprintf(number, sizeof(number), "%d", context->number);
	snprintf(actor, sizeof(actor), "%d", context->actor);
	snprintf(at, sizeof(at), "%d", context->at);
	return execve("/proc/self/exe", words, environment);
}

void leave(struct context *context, const struct step *step)
{
	struct program *program = context->program;

	program->result[context->at].progress = DONE;
	program->result[context->at].ended_ns = now_ns();
	mark_absent(program, program->actors[context->actor].process);
	if (program->actors[context->actor].process == 0)
		for (int i = 0; i < ACTORS; i++)
			program->actors[i].alive = 0;
	advance(program, context->at);
	switch (step->b) {
	case 0:
		_exit(step->a);
	case 1:
		exit(step->a);
	case 2:
		raise(SIGKILL);
		_exit(97);
	default:
		abort();
	}
}
