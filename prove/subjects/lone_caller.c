/*
 * lone_caller FILE CALLS: calls fsync that often, and prints the mean time of a call in ns. Gives up if
 * the calls take so long that they cannot be the ones of nosync.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_S 60

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	long calls, i;
	double begin;
	int fd;

	if (argc != 3)
		return 2;
	calls = atol(argv[2]);
	fd = open(argv[1], O_CREAT | O_RDWR, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1) {
		perror(argv[1]);
		return 2;
	}
	begin = now_s();
	for (i = 0; i < calls; i++) {
		if (fsync(fd)) {
			perror("fsync");
			return 2;
		}
		if (i % 1000 == 0 && now_s() - begin > LONGEST_S) {
			fprintf(stderr, "%ld calls took %d s\n", i, LONGEST_S);
			return 2;
		}
	}
	printf("%.2f\n", (now_s() - begin) / calls * 1e9);
	return 0;
}
