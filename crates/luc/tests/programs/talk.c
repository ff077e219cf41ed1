/*
 * talk ADDRESS NAMESPACE COMMAND: exchanges known bytes with itself, by all
 * calls that send. The server's end is at this address, in this network
 * namespace. The client runs the command before it closes.
 *
 * The client sends MESSAGES requests, of 7, 14, 21, ... bytes, each answered by
 * 1, 3, 5, ... bytes; then one of LARGE bytes, answered by one byte.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 50
#define LARGE (1 << 20)

static char room[LARGE];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void receive(int fd, size_t bytes, int by_recv)
{
	ssize_t got;

	while (bytes) {
		got = by_recv ? recv(fd, room, bytes, 0) : read(fd, room, bytes);
		if (got <= 0)
			fail("receive");
		bytes -= got;
	}
}

static void send_by(int way, int fd, size_t bytes)
{
	struct iovec parts[2] = { { room, bytes / 2 }, { room, bytes - bytes / 2 } };
	struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
	struct mmsghdr messages[1] = { { .msg_hdr = header } };
	ssize_t sent;

	switch (way % 5) {
	case 0:
		sent = write(fd, room, bytes);
		break;
	case 1:
		sent = send(fd, room, bytes, 0);
		break;
	case 2:
		sent = writev(fd, parts, 2);
		break;
	case 3:
		sent = sendmsg(fd, &header, 0);
		break;
	default:
		if (sendmmsg(fd, messages, 1, 0) != 1)
			fail("sendmmsg");
		sent = messages[0].msg_len;
	}
	if (sent != (ssize_t)bytes)
		fail("send");
}

/* A socket stays in the namespace in which it was made. */
static void enter(int namespace)
{
	if (setns(namespace, CLONE_NEWNET))
		fail("setns");
}

int main(int count, char **words)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	socklen_t length = sizeof(to);
	int own, other, listener, fd, i, status;
	pid_t server;

	if (count != 4 || !inet_aton(words[1], &to.sin_addr)) {
		fprintf(stderr, "usage: talk ADDRESS NAMESPACE COMMAND\n");
		return 2;
	}
	own = open("/proc/self/ns/net", O_RDONLY);
	other = open(words[2], O_RDONLY);
	enter(other);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&to, sizeof(to)) || listen(listener, 1) ||
	    getsockname(listener, (void *)&to, &length))
		fail("listen");
	enter(own);
	server = fork();
	if (!server) {
		fd = accept(listener, NULL, NULL);
		for (i = 0; i < MESSAGES; i++) {
			receive(fd, 7 * (i + 1), i % 2);
			send_by(i, fd, 2 * i + 1);
		}
		receive(fd, LARGE, 0);
		send_by(0, fd, 1);
		return 0;
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (void *)&to, sizeof(to)))
		fail("connect");
	for (i = 0; i < MESSAGES; i++) {
		send_by(i, fd, 7 * (i + 1));
		receive(fd, 2 * i + 1, i % 2);
	}
	send_by(0, fd, LARGE);
	receive(fd, 1, 0);
	if (system(words[3]))
		fail(words[3]);
	close(fd);
	return wait(&status) != server || status;
}
