/*
 * What a program may do that wants to harm those who share its supervisor, and what another
 * one measures beside it:
 *
 * numbers COUNT: synchronizes numbers that are no descriptors.
 * server DIR COUNT: synchronizes a file of a server at DIR that never answers a close.
 * exchange DIR FILE COUNT: the same by a number that was FILE before, and then FILE, COUNT times.
 * connect PATH SECONDS: connects to a socket again and again.
 * measure DIR SECONDS: four threads that create and synchronize files; "p99_us count".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define MOST_CALLS 100000

static int device;
static _Atomic int answers;
static const char *folder;
static double end;
static double taken[THREADS * MOST_CALLS];
static _Atomic long calls;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static int numbers(long count)
{
	for (long call = 0; call < count; call++) {
		if (!fsync(1000 + (int)(call % 2000000000)) || errno != EBADF)
			return 1;
	}
	return 0;
}

static void reply(unsigned long long unique, int error, void *data, size_t size)
{
	char bytes[1024];
	struct fuse_out_header *head = (void *)bytes;

	head->unique = unique;
	head->error = error;
	head->len = sizeof(*head) + size;
	if (size)
		memcpy(head + 1, data, size);
	if (write(device, bytes, head->len) < 0 && errno != ENOENT)
		perror("reply");
}

static struct fuse_attr attributes(unsigned long long inode)
{
	struct fuse_attr attributes = {
		.ino = inode,
		.mode = inode == 1 ? S_IFDIR | 0755 : S_IFREG | 0644,
		.nlink = 1,
		.blksize = 4096,
	};

	return attributes;
}

static void *serve(void *unused)
{
	static char bytes[1 << 20];
	struct fuse_in_header *head = (void *)bytes;

	(void)unused;
	while (read(device, bytes, sizeof(bytes)) >= 0 || errno != ENODEV) {
		struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
		struct fuse_attr_out attr = { .attr_valid = 1000 };
		struct fuse_entry_out entry = { .nodeid = 2,
						.entry_valid = 1000,
						.attr_valid = 1000 };
		struct fuse_open_out opened = { 0 };

		switch (head->opcode) {
		case FUSE_INIT:
			reply(head->unique, 0, &init, sizeof(init));
			break;
		case FUSE_GETATTR:
			attr.attr = attributes(head->nodeid);
			reply(head->unique, 0, &attr, sizeof(attr));
			break;
		case FUSE_LOOKUP:
			entry.attr = attributes(2);
			reply(head->unique, 0, &entry, sizeof(entry));
			break;
		case FUSE_OPEN:
			reply(head->unique, 0, &opened, sizeof(opened));
			break;
		case FUSE_FLUSH:
			if (answers)
				reply(head->unique, 0, NULL, 0);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			reply(head->unique, -ENOSYS, NULL, 0);
		}
	}
	return NULL;
}

static int open_of_server(const char *path)
{
	char words[128], file[4096];
	pthread_t thread;

	device = open("/dev/fuse", O_RDWR);
	snprintf(words, sizeof(words), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("hostile", path, "fuse", 0, words))
		exit(1);
	pthread_create(&thread, NULL, serve, NULL);
	snprintf(file, sizeof(file), "%s/x", path);
	return open(file, O_RDWR);
}

static void end_server(const char *path, int fd)
{
	/* Its own close, or it could not end. */
	answers = 1;
	close(fd);
	umount2(path, MNT_DETACH);
	_exit(fd < 0);
}

static int server(const char *path, long count)
{
	int fd = open_of_server(path);

	for (long call = 0; fd >= 0 && call < count; call++)
		fsync(fd);
	end_server(path, fd);
	return 0;
}

static int synchronize(const char *path, long count)
{
	int fd = open(path, O_CREAT | O_RDWR, 0600);

	for (long call = 0; call < count; call++) {
		if (write(fd, path, 1) != 1 || fsync(fd))
			exit(1);
	}
	return fd;
}

static int exchange(const char *path, const char *file, long count)
{
	int of_server = open_of_server(path), fd = synchronize(file, count);

	if (of_server < 0 || dup2(of_server, fd) < 0)
		return 1;
	for (int call = 0; call < 20; call++)
		fsync(fd);
	close(synchronize(file, count));
	answers = 1;
	close(fd);
	end_server(path, of_server);
	return 0;
}

static int flood(const char *path, double seconds)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	for (double last = now() + seconds; now() < last;) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (void *)&address, sizeof(address)))
			usleep(1000);
		close(fd);
	}
	return 0;
}

static void *create(void *number)
{
	char path[4096];

	for (long file = 0; now() < end; file++) {
		double begun;
		long call;
		int fd;

		snprintf(path, sizeof(path), "%s/%ld-%ld", folder, (long)number, file % 64);
		fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
		begun = now();
		if (fd < 0 || write(fd, path, 64) != 64 || fsync(fd))
			exit(1);
		call = calls++;
		if (call < THREADS * MOST_CALLS)
			taken[call] = now() - begun;
		close(fd);
	}
	return NULL;
}

static int compare(const void *one, const void *other)
{
	double difference = *(const double *)one - *(const double *)other;

	return (difference > 0) - (difference < 0);
}

static int measure(const char *path, double seconds)
{
	pthread_t threads[THREADS];

	folder = path;
	end = now() + seconds;
	for (long number = 0; number < THREADS; number++)
		pthread_create(&threads[number], NULL, create, (void *)number);
	for (int number = 0; number < THREADS; number++)
		pthread_join(threads[number], NULL);
	qsort(taken, calls, sizeof(*taken), compare);
	printf("%.0f %ld\n", taken[calls * 99 / 100] * 1e6, calls);
	return 0;
}

int main(int count, char **words)
{
	if (count == 3 && !strcmp(words[1], "numbers"))
		return numbers(atol(words[2]));
	if (count == 4 && !strcmp(words[1], "server"))
		return server(words[2], atol(words[3]));
	if (count == 5 && !strcmp(words[1], "exchange"))
		return exchange(words[2], words[3], atol(words[4]));
	if (count == 4 && !strcmp(words[1], "connect"))
		return flood(words[2], atof(words[3]));
	if (count == 4 && !strcmp(words[1], "measure"))
		return measure(words[2], atof(words[3]));
	return 2;
}
