// Receives a socket over its standard input, reads 22 bytes from it, and sends them back.
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	char text[32], control[CMSG_SPACE(sizeof(int))];
	struct iovec room = { .iov_base = text, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &room,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *passed;
	int socket;

	if (recvmsg(0, &message, 0) != 1)
		return 1;
	passed = CMSG_FIRSTHDR(&message);
	if (!passed || passed->cmsg_type != SCM_RIGHTS)
		return 2;
	memcpy(&socket, CMSG_DATA(passed), sizeof(socket));
	if (recv(socket, text, 22, MSG_WAITALL) != 22)
		return 3;
	return write(socket, text, 22) == 22 ? 0 : 4;
}
