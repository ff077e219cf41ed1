// Keeps QEMU's main thread out while processors execute. It is preloaded into an unmodified QEMU
// that runs several processors in virtual time (qemu_command_line.rs).
//
// All processors execute on one thread, one after another. When all are idle the thread sleeps, and
// the main thread advances the virtual clock (icount_start_warp_timer). A virtual timer wakes the
// main thread as well (aio_notify, by way of qemu_clock_notify). If that one then finds all
// processors idle before the other sleeps, it advances the clock in the middle of a round, and the
// next round begins with another processor: two runs differ. So what wakes the main thread is kept
// from it until the other sleeps.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The processors' thread, as QEMU names it with debug-threads=on.
#define PROCESSORS "ALL CPUs/TCG"
// Processors that are busy for so long may wait for the main thread themselves, as firmware does
// for a device. All of them are idle at that moment only by chance.
#define PATIENCE_NS 20000000

// Whether the processors' thread sleeps; until there is one, it is in nobody's way.
static _Atomic int asleep = 1;
// What it sleeps on.
static pthread_cond_t *_Atomic halted;

static int (*wait_for)(pthread_cond_t *, pthread_mutex_t *);
static int (*wake_all)(pthread_cond_t *);
static int (*poll_for)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

__attribute__((constructor)) static void find(void)
{
	// Without a version these are the ones for programs older than 2003.
	wait_for = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	wake_all = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	poll_for = dlsym(RTLD_NEXT, "ppoll");
}

static bool is_processors(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return strcmp(name, PROCESSORS) == 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	if (is_processors()) {
		halted = condition;
		asleep = 1;
		// The main thread cannot go on before the mutex, QEMU's big lock, is given away.
		syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
	return wait_for(condition, mutex);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (condition == halted)
		asleep = 0;
	return wake_all(condition);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static const struct timespec patience = { .tv_nsec = PATIENCE_NS };
	int ready = poll_for(files, count, timeout, mask);

	if (getpid() == gettid() && !asleep)
		syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 0, &patience, NULL, 0);
	return ready;
}
