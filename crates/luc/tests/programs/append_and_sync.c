/*
 * Appends records to a file and synchronizes each: what any C library can do. Prints how many calls failed.
 *
 * usage: writer FILE RECORDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd, records, failed = 0;

	if (argc != 3)
		return 2;
	fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
	for (records = atoi(argv[2]); records > 0; records--)
		if (write(fd, "record\n", 7) != 7 || fsync(fd) != 0)
			failed++;
	printf("%d\n", failed);
	return failed != 0;
}
