// Leaves a state to a command: "parent KEY NUMBER... -- COMMAND".
//
// alarm: that many milliseconds until SIGALRM; ignore, block: a signal; close: a descriptor; limit: of descriptors;
// refuse: a system call fails with ENOSYS; death: a signal that comes when the parent ends.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static int refuse(unsigned int number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int leave(const char *key, int number)
{
	struct itimerval timer = { .it_value = { number / 1000, number % 1000 * 1000 } };
	struct rlimit limit = { number, number };
	sigset_t set;

	if (!strcmp(key, "alarm"))
		return setitimer(ITIMER_REAL, &timer, NULL);
	if (!strcmp(key, "ignore"))
		return signal(number, SIG_IGN) == SIG_ERR;
	if (!strcmp(key, "close"))
		return close(number);
	if (!strcmp(key, "limit"))
		return setrlimit(RLIMIT_NOFILE, &limit);
	if (!strcmp(key, "refuse"))
		return refuse(number);
	if (!strcmp(key, "death"))
		return prctl(PR_SET_PDEATHSIG, number, 0, 0, 0);
	sigemptyset(&set);
	return strcmp(key, "block") || sigaddset(&set, number) || sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int count, char **words)
{
	for (words++; count > 3 && strcmp(*words, "--"); words += 2)
		if (leave(words[0], atoi(words[1])))
			return 100;
	execvp(words[1], words + 1);
	return 101;
}
