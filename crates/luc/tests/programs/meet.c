/*
 * Pairs of unix sockets whose two ends are used for the first time at once: one
 * thread asks on each, and another answers, and neither ever sleeps. REQUESTS
 * requests of 7, 14 and 21 bytes are answered by 1, 3 and 5 bytes; then who asks
 * sends LAST bytes and closes, and the other reads them after that. The kernel uses
 * the memory of closed sockets for those of the next round.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 30
#define PAIRS 20
#define REQUESTS 3
#define LAST 9

static int pairs[PAIRS][2];
static pthread_barrier_t barrier;

static void get(int fd, ssize_t bytes)
{
	char room[64];

	while (bytes) {
		ssize_t got = recv(fd, room, bytes, MSG_DONTWAIT);

		if (got > 0) {
			bytes -= got;
		} else if (!got || errno != EAGAIN) {
			perror("receive");
			exit(1);
		}
	}
}

static void put(int fd, ssize_t bytes)
{
	char room[64] = {};

	if (write(fd, room, bytes) != bytes) {
		perror("send");
		exit(1);
	}
}

static void *answer(void *unused)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		for (int pair = 0; pair < PAIRS; pair++)
			for (int number = 0; number < REQUESTS; number++) {
				get(pairs[pair][1], 7 * (number + 1));
				put(pairs[pair][1], 2 * number + 1);
			}
		pthread_barrier_wait(&barrier);
		for (int pair = 0; pair < PAIRS; pair++) {
			get(pairs[pair][1], LAST);
			close(pairs[pair][1]);
		}
		pthread_barrier_wait(&barrier);
	}
	return unused;
}

int main(void)
{
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&other, NULL, answer, NULL))
		return 1;
	for (int round = 0; round < ROUNDS; round++) {
		for (int pair = 0; pair < PAIRS; pair++)
			if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[pair]))
				return 1;
		pthread_barrier_wait(&barrier);
		for (int pair = 0; pair < PAIRS; pair++)
			for (int number = 0; number < REQUESTS; number++) {
				put(pairs[pair][0], 7 * (number + 1));
				get(pairs[pair][0], 2 * number + 1);
			}
		for (int pair = 0; pair < PAIRS; pair++) {
			put(pairs[pair][0], LAST);
			close(pairs[pair][0]);
		}
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	return pthread_join(other, NULL);
}
