/*
 * UNSAFE, for experiments: fsync and fdatasync that do nothing, to measure what a library before it in
 * LD_PRELOAD costs. Nothing is durable under it.
 */
int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}
