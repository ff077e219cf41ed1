/*
 * Writes to the file that is named and synchronizes it until its calls are held, says where on the disk its first extent is
 * ("at OFFSET"), waits for a line, overwrites the file, and says what the next calls returned: "told ERRNO ERRNO ERRNO
 * ERRNO", two after the first write, two after another one. Run by notify/errors.rs on a disk that fails meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BYTES 65536

static int told(int fd)
{
	return fsync(fd) ? errno : 0;
}

int main(int argc, char **argv)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extent;
	} asked = { .map = { .fm_length = BYTES, .fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = 1 } };
	static char bytes[BYTES];
	int fd, i, results[4];

	if (argc != 2)
		return 2;
	fd = open(argv[1], O_CREAT | O_RDWR, 0600);
	for (i = 0; i < 8; i++)
		if (pwrite(fd, bytes, BYTES, 0) != BYTES || fsync(fd))
			return 1;
	if (ioctl(fd, FS_IOC_FIEMAP, &asked) || asked.map.fm_mapped_extents != 1)
		return 1;
	printf("at %llu\n", (unsigned long long)asked.extent.fe_physical);
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	for (i = 0; i < 4; i += 2) {
		memset(bytes, 'a' + i, BYTES);
		if (pwrite(fd, bytes, BYTES, 0) != BYTES)
			return 1;
		results[i] = told(fd);
		results[i + 1] = told(fd);
	}
	printf("told %d %d %d %d\n", results[0], results[1], results[2], results[3]);
	return 0;
}
