/* Programs that leave the gate no room: each case synchronizes a file and exits with 0 if it may. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define ALLOW(number)                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),       \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL(number)                                               \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),       \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int open_file(void)
{
	int fd = open("limits-file", O_RDWR | O_CREAT, 0644);

	if (fd < 0)
		die("open");
	return fd;
}

static void synchronize(int fd)
{
	if (pwrite(fd, "x", 1, 0) != 1)
		die("pwrite");
	if (fsync(fd) || fdatasync(fd))
		die("fsync");
}

/* A filter like those of old sandboxes: what the program needs, and death for all else. */
static struct sock_filter strict[] = {
	LOAD_NUMBER,
	ALLOW(SYS_pwrite64),
	ALLOW(SYS_fsync),
	ALLOW(SYS_fdatasync),
	ALLOW(SYS_write),
	ALLOW(SYS_exit_group),
	ALLOW(SYS_rt_sigreturn),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

/* A filter that the dynamic loader survives, but none of the calls that only the gate makes. */
static struct sock_filter inherited[] = {
	LOAD_NUMBER,
	KILL(SYS_statx),
	KILL(SYS_sync_file_range),
	KILL(SYS_ioctl),
	KILL(SYS_futex),
	KILL(SYS_sched_yield),
	KILL(SYS_sigaltstack),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void no_new_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("PR_SET_NO_NEW_PRIVS");
}

static void by_prctl(void)
{
	struct sock_fprog filter = { sizeof(strict) / sizeof(*strict), strict };
	int fd = open_file();

	synchronize(fd);
	no_new_privileges();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		die("PR_SET_SECCOMP");
	synchronize(fd);
	_exit(0);
}

static void by_syscall(void)
{
	struct sock_fprog filter = { sizeof(strict) / sizeof(*strict), strict };
	int fd = open_file();

	synchronize(fd);
	no_new_privileges();
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
		die("seccomp");
	synchronize(fd);
	_exit(0);
}

static void before_exec(char *program)
{
	struct sock_fprog filter = { sizeof(inherited) / sizeof(*inherited), inherited };

	no_new_privileges();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		die("PR_SET_SECCOMP");
	execl(program, program, "plain", NULL);
	die("execl");
}

static int handler_fd;
static volatile sig_atomic_t handled;

static void handler(int signal)
{
	(void)signal;
	if (pwrite(handler_fd, "x", 1, 0) == 1 && fsync(handler_fd) == 0)
		handled++;
}

/* fsync on a signal stack with 1 KiB beside the kernel's frame, above a page that nobody may touch. */
static void small_stack(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 2048;
	unsigned long frame = getauxval(AT_MINSIGSTKSZ);
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { 0 };
	char *memory;

	if (frame + 1024 > size)
		size = frame + 1024;
	memory = mmap(NULL, 16 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory + page, 15 * page, PROT_READ | PROT_WRITE))
		die("mmap");
	/* Its low end is at the forbidden page, unless it is no multiple of 16. */
	stack.ss_sp = memory + page;
	stack.ss_size = size & ~15UL;
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		die("sigaltstack");
	handler_fd = open_file();
	/* The process' first call is the handler's. */
	raise(SIGUSR1);
	synchronize(handler_fd);
	for (int i = 0; i < 20; i++)
		raise(SIGUSR1);
	if (handled != 21) {
		fprintf(stderr, "handled %d of 21\n", (int)handled);
		exit(1);
	}
}

/* The C library reads the clock in the vDSO, so that a program's filter need not know this call. */
static struct sock_filter without_clock[] = {
	LOAD_NUMBER,
	KILL(SYS_clock_gettime),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter refusing_clock[] = {
	LOAD_NUMBER,
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static volatile int is_over;

static void *synchronize_until_the_end(void *unused)
{
	int fd = open_file();

	while (!is_over)
		synchronize(fd);
	return unused;
}

/* A filter for all threads; some of them synchronize. */
static void by_all_threads(void)
{
	struct sock_fprog filter = { sizeof(without_clock) / sizeof(*without_clock),
				     without_clock };
	struct timespec pause = { 0, 50000000 };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, synchronize_until_the_end, NULL))
			die("pthread_create");
	}
	nanosleep(&pause, NULL);
	no_new_privileges();
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
		die("seccomp");
	nanosleep(&pause, NULL);
	is_over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

#ifdef __x86_64__
static long by_instruction(long number, long a, long b, void *c)
{
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory");
	return result;
}

/* A filter that nobody sees being set, and that refuses the clock. */
static void by_nobody_s_call(void)
{
	struct sock_fprog filter = { sizeof(refusing_clock) / sizeof(*refusing_clock),
				     refusing_clock };
	int fd = open_file();

	synchronize(fd);
	no_new_privileges();
	if (by_instruction(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
		die("seccomp");
	alarm(20);
	synchronize(fd);
	synchronize(fd);
}
#endif

int main(int count, char **arguments)
{
	const char *which = count > 1 ? arguments[1] : "";

	if (!strcmp(which, "plain"))
		synchronize(open_file());
	else if (!strcmp(which, "prctl"))
		by_prctl();
	else if (!strcmp(which, "syscall"))
		by_syscall();
	else if (!strcmp(which, "exec"))
		before_exec(arguments[0]);
	else if (!strcmp(which, "stack"))
		small_stack();
	else if (!strcmp(which, "threads"))
		by_all_threads();
#ifdef __x86_64__
	else if (!strcmp(which, "unseen"))
		by_nobody_s_call();
#endif
	else
		return 2;
	return 0;
}
