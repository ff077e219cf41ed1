/*
 * A 32-bit program without a C library: opens the file "i386", writes to it and synchronizes it COUNT times by fsync and
 * fdatasync, and exits with 0 if all of that succeeded. `cc -m32 -static -nostdlib`.
 */
#define COUNT 20

enum { EXIT = 1, WRITE = 4, OPEN = 5, FSYNC = 118, FDATASYNC = 148 };

static int call(int number, long a, long b, long c)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

void _start(void)
{
	int fd = call(OPEN, (long)"i386", 0102, 0600), is_bad = fd < 0, i;

	for (i = 0; i < COUNT && !is_bad; i++) {
		is_bad |= call(WRITE, fd, (long)"x", 1) != 1;
		is_bad |= call(i % 2 ? FSYNC : FDATASYNC, fd, 0, 0) != 0;
	}
	/* EBADF comes from the kernel, whoever was asked before. */
	is_bad |= call(FSYNC, -1, 0, 0) != -9;
	call(EXIT, is_bad, 0, 0);
}
