/*
 * Breadth-first search over a graph in a mapped file: bfs FILE, or bfs --make FILE to write the graph into a file.
 *
 * A vertex is a block of 16 KiB, full of the numbers of its neighbours, which are drawn at random. The file decides how
 * many there are. Ends with 1 if not all are reached.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (16 << 10)
#define EDGES (BLOCK / sizeof(uint32_t))

static int make(uint32_t *graph, uint32_t count)
{
	uint64_t state = 17;
	uint32_t vertex, edge;

	for (vertex = 0; vertex < count; vertex++)
		for (edge = 0; edge < EDGES; edge++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			graph[vertex * EDGES + edge] = (state >> 33) % count;
		}
	return msync(graph, (size_t)count * BLOCK, MS_SYNC) ? 2 : 0;
}

static int search(const uint32_t *graph, uint32_t count)
{
	uint32_t *queue = malloc(count * sizeof(*queue));
	char *is_known = calloc(count, 1);
	uint32_t first = 0, last = 1, edge, next;

	if (!queue || !is_known)
		return 2;
	queue[0] = 0;
	is_known[0] = 1;
	for (; first < last; first++)
		for (edge = 0; edge < EDGES; edge++) {
			next = graph[queue[first] * EDGES + edge];
			if (next < count && !is_known[next]) {
				is_known[next] = 1;
				queue[last++] = next;
			}
		}
	return last != count;
}

int main(int count, char **words)
{
	int is_made = count == 3 && !strcmp(words[1], "--make");
	struct stat about;
	void *graph;
	int fd;

	if (count != 2 && !is_made)
		return 2;
	fd = open(words[count - 1], is_made ? O_RDWR : O_RDONLY);
	if (fd < 0 || fstat(fd, &about) || about.st_size < BLOCK)
		return 2;
	graph = mmap(NULL, about.st_size, is_made ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	if (graph == MAP_FAILED)
		return 2;
	return is_made ? make(graph, about.st_size / BLOCK) : search(graph, about.st_size / BLOCK);
}
