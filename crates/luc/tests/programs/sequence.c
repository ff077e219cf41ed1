/* Connects with a given initial sequence number, sends, and reads to the end. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* linux/tcp.h */
#define REPAIR 19
#define REPAIR_QUEUE 20
#define QUEUE_SEQ 21
#define SEND_QUEUE 2
#define REPAIR_OFF_WITHOUT_PROBE -1

static void set(int fd, int name, int value)
{
	if (setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value))) {
		perror("setsockopt");
		exit(2);
	}
}

/* ADDRESS PORT INITIAL MESSAGES BYTES */
int main(int count, char **words)
{
	static char message[1 << 16];
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int messages, i;

	if (count != 6)
		return 2;
	to.sin_port = htons(atoi(words[2]));
	inet_pton(AF_INET, words[1], &to.sin_addr);
	set(fd, REPAIR, 1);
	set(fd, REPAIR_QUEUE, SEND_QUEUE);
	set(fd, QUEUE_SEQ, (int)strtoul(words[3], NULL, 0));
	set(fd, REPAIR, REPAIR_OFF_WITHOUT_PROBE);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		perror("connect");
		return 1;
	}
	messages = atoi(words[4]);
	for (i = 0; i < messages; i++) {
		if (send(fd, message, atoi(words[5]), 0) != atoi(words[5]))
			return 1;
	}
	shutdown(fd, SHUT_WR);
	while (read(fd, message, sizeof(message)) > 0)
		;
	return 0;
}
