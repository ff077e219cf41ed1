/*
 * Runs programs, many at once, each in a process of its own.
 *
 *	subject BATCH                            runs all programs of a file, which is shared memory
 *	subject --continue NUMBER ACTOR STEP     goes on with one, after it has executed this file
 *	subject --sync FD                        fsync of a descriptor that it has inherited
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subject.h"

#define MAX_WIDTH 1024
/* Held calls are late by 20 ms each. */
#define LIMIT_NS 20000000000ull

struct batch *batch;
char **environment;

struct running {
	pid_t pid;
	int number;
	uint64_t begun_ns;
};

static int map_batch(void)
{
	struct stat about;

	if (fstat(BATCH_FD, &about))
		return -1;
	batch = mmap(NULL, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, BATCH_FD, 0);
	return batch == MAP_FAILED || batch->magic != MAGIC ? -1 : 0;
}

/* The process of a program: waits for all calls under way before it ends. */
static void conclude(struct program *program)
{
	await_all(program, -1);
	exit(0);
}

static void begin(int number)
{
	struct program *program = &batch->program[number];
	char folder[NAMES + 32];
	sigset_t none;
	struct rlimit no_core = { 0, 0 };
	int null;

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGPIPE, SIG_IGN);
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	raw(SYS_close_range, 3, BATCH_FD - 1, 0, 0, 0, 0);
	raw(SYS_close_range, BATCH_FD + 1, ~0u, 0, 0, 0, 0);
	snprintf(folder, sizeof(folder), "%s/p%05d", batch->folder, number);
	if (mkdir(folder, 0700) || chdir(folder))
		_exit(99);
	program->processes = 1;
	for (int slot = 0; slot < SLOTS; slot++)
		program->process[0].slots[slot] = -1;
	program->actors[0].alive = 1;
	advance(program, -1);
	run_actor(program, number, 0, 0);
	conclude(program);
}

static void accompany(int number)
{
	char path[NAMES + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/companion%d", batch->folder, number);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	while (fd >= 0 && !__atomic_load_n(&batch->is_over, __ATOMIC_SEQ_CST))
		if (pwrite(fd, path, 1, 0) != 1 || ftruncate(fd, 1) || fsync(fd))
			pause_ns(1000000);
	_exit(0);
}

static void finish(struct running *running, int status)
{
	struct program *program = &batch->program[running->number];

	program->status = status;
	__atomic_store_n(&program->over, 1, __ATOMIC_SEQ_CST);
	wake(&program->turn);
	wake(&program->over);
	kill(-running->pid, SIGKILL);
	running->pid = 0;
}

static void run(void)
{
	static struct running running[MAX_WIDTH];
	uint32_t width = batch->width < MAX_WIDTH ? batch->width : MAX_WIDTH;
	uint32_t next = 0, active = 0;
	struct timespec tick = { .tv_nsec = 50000000 };
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	for (uint32_t i = 0; i < batch->companions; i++)
		if (fork() == 0)
			accompany(i);
	while (next < batch->programs || active) {
		int status;
		pid_t pid;

		while (active < width && next < batch->programs) {
			struct running *free = running;

			while (free->pid)
				free++;
			pid = fork();
			if (pid < 0) {
				perror("subject: fork");
				exit(3);
			}
			if (pid == 0)
				begin(next);
			*free = (struct running){ pid, next++, now_ns() };
			active++;
		}
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			for (uint32_t i = 0; i < width; i++)
				if (running[i].pid == pid) {
					finish(&running[i], status);
					active--;
				}
		for (uint32_t i = 0; i < width; i++)
			if (running[i].pid && now_ns() - running[i].begun_ns > LIMIT_NS) {
				batch->program[running[i].number].hung = 1;
				kill(-running[i].pid, SIGKILL);
				kill(running[i].pid, SIGKILL);
			}
		if (active >= width || next >= batch->programs)
			sigtimedwait(&children, NULL, &tick);
	}
	batch->is_over = 1;
	/* What they have left. */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

static void warm_up(void)
{
	char path[NAMES + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/warm", batch->folder);
	for (uint32_t i = 0; i < batch->warm; i++) {
		fd = open(path, O_CREAT | O_RDWR, 0600);
		if (write(fd, path, 1) == 1)
			fsync(fd);
		close(fd);
	}
}

int main(int count, char **words, char **all)
{
	environment = all;
	if (count == 3 && !strcmp(words[1], "--sync"))
		return fsync(atoi(words[2])) ? errno : 0;
	if (count == 5 && !strcmp(words[1], "--continue")) {
		struct program *program;
		int number = atoi(words[2]), actor = atoi(words[3]), at = atoi(words[4]);

		if (map_batch())
			return 98;
		program = &batch->program[number];
		program->result[at].value = 0;
		program->result[at].error = 0;
		program->result[at].ended_ns = now_ns();
		program->result[at].progress = DONE;
		program->actors[actor].tid = 0;
		program->actors[actor].pid = getpid();
		__atomic_store_n(&program->actors[actor].tid, getpid(), __ATOMIC_SEQ_CST);
		advance(program, at);
		run_actor(program, number, actor, at + 1);
		if (program->actors[actor].process != 0) {
			await_all(program, program->actors[actor].process);
			_exit(0);
		}
		conclude(program);
	}
	if (count == 2) {
		int fd = open(words[1], O_RDWR), is_attached;

		if (fd < 0 || dup2(fd, BATCH_FD) < 0 || map_batch()) {
			fprintf(stderr, "subject: %s: no batch\n", words[1]);
			return 2;
		}
		close(fd);
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		/* Attached to, it waits until that is done, and at its end for who wants to know
		 * what that did. */
		is_attached = !batch->go;
		while (!__atomic_load_n(&batch->go, __ATOMIC_SEQ_CST))
			pause_ns(1000000);
		warm_up();
		run();
		while (is_attached && __atomic_load_n(&batch->go, __ATOMIC_SEQ_CST) != 2)
			pause_ns(1000000);
		return 0;
	}
	fprintf(stderr, "subject: a batch, --continue or --sync\n");
	return 2;
}
