/*
 * Exchanges known bytes with a child, on a connection to /run/planted and on a
 * pair of sockets, by all calls that send and receive: MESSAGES requests of 7, 14,
 * 21, ... bytes, each answered by 1, 3, 5, ... bytes. Then the child reads PIPED
 * bytes from a pipe.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 50
#define PIPED 123456

static char room[PIPED];

static void check(ssize_t result, size_t wanted, const char *what)
{
	if (result != (ssize_t)wanted) {
		perror(what);
		exit(1);
	}
}

static void put(int way, int fd, size_t bytes)
{
	struct iovec part = { room, bytes };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	switch (way % 4) {
	case 0:
		sent = write(fd, room, bytes);
		break;
	case 1:
		sent = send(fd, room, bytes, 0);
		break;
	case 2:
		sent = writev(fd, &part, 1);
		break;
	default:
		sent = sendmsg(fd, &header, 0);
	}
	check(sent, bytes, "send");
}

static void get(int way, int fd, size_t bytes)
{
	struct iovec part = { room, bytes };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t got;

	/* A look does not count. */
	recv(fd, room, bytes, MSG_PEEK | MSG_WAITALL);
	recvmsg(fd, &header, MSG_PEEK | MSG_WAITALL);
	switch (way % 4) {
	case 0:
		got = read(fd, room, bytes);
		break;
	case 1:
		got = recv(fd, room, bytes, 0);
		break;
	case 2:
		got = readv(fd, &part, 1);
		break;
	default:
		got = recvmsg(fd, &header, 0);
	}
	check(got, bytes, "receive");
}

static void ask(int fd)
{
	for (int number = 0; number < MESSAGES; number++) {
		put(number, fd, 7 * (number + 1));
		get(number, fd, 2 * number + 1);
	}
}

static void answer(int fd)
{
	for (int number = 0; number < MESSAGES; number++) {
		get(number, fd, 7 * (number + 1));
		put(number, fd, 2 * number + 1);
	}
}

int main(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "/run/planted" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client, pair[2], ends[2], status;
	size_t left = PIPED;

	unlink(name.sun_path);
	check(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0, "bind");
	check(listen(listener, 1), 0, "listen");
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0, "socketpair");
	check(pipe(ends), 0, "pipe");
	if (!fork()) {
		client = accept(listener, NULL, NULL);
		answer(client);
		answer(pair[1]);
		while (left) {
			ssize_t got = read(ends[0], room, left);

			if (got <= 0)
				return 1;
			left -= got;
		}
		return 0;
	}
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	check(connect(client, (struct sockaddr *)&name, sizeof(name)), 0, "connect");
	ask(client);
	ask(pair[0]);
	check(write(ends[1], room, PIPED), PIPED, "write");
	wait(&status);
	unlink(name.sun_path);
	return status != 0;
}
