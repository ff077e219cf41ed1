/*
 * DEVICE join: has a network device join the packets that it receives (GRO).
 * DEVICE cut: has the kernel cut packets before it gives them to the device.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int main(int count, char **words)
{
	struct ethtool_value value = { .cmd = ETHTOOL_SGRO, .data = 1 };
	struct ifreq request = { .ifr_data = (void *)&value };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (count != 3)
		return 2;
	if (!strcmp(words[2], "cut")) {
		value.cmd = ETHTOOL_STSO;
		value.data = 0;
	}
	strncpy(request.ifr_name, words[1], IFNAMSIZ - 1);
	if (ioctl(fd, SIOCETHTOOL, &request)) {
		perror(words[1]);
		return 1;
	}
	return 0;
}
