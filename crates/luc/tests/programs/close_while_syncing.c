/*
 * reused DIR OTHER close|reuse NAME: a thread synchronizes DIR/NAME, and another one closes the
 * descriptor meanwhile, or opens OTHER under its number as well. Says what fsync returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd;
static _Atomic int thread;

static void *synchronize(void *unused)
{
	int result;

	(void)unused;
	thread = (int)syscall(SYS_gettid);
	result = fsync(fd);
	printf("%s\n", result ? strerror(errno) : "ok");
	return NULL;
}

/* Whether the thread is in its call. */
static int is_in_call(void)
{
	char path[64], text[16] = "";
	int file, number;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	file = open(path, O_RDONLY);
	if (file < 0 || read(file, text, sizeof(text) - 1) < 0)
		return 0;
	close(file);
	return sscanf(text, "%d", &number) == 1 && number == SYS_fsync;
}

int main(int count, char **words)
{
	char path[4096];
	pthread_t other;

	if (count != 5)
		return 2;
	snprintf(path, sizeof(path), "%s/%s", words[1], words[4]);
	fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
	if (fd < 0 || write(fd, "important", 9) != 9)
		return 1;
	pthread_create(&other, NULL, synchronize, NULL);
	while (!thread || !is_in_call())
		usleep(100);
	/* It is held for longer. */
	usleep(4000);
	close(fd);
	if (!strcmp(words[3], "reuse") && open(words[2], O_CREAT | O_RDWR, 0600) != fd)
		return 3;
	pthread_join(other, NULL);
	return 0;
}
