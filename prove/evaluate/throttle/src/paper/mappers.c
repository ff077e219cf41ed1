/*
 * A word count of many mappers: mappers PREFIX THREADS. Each thread counts the words of one file, through the page
 * cache; the files are PREFIX1, PREFIX2 and so on.
 *
 * Ends with 1 if one of them cannot be read or has no words.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK (128 << 10)
#define MOST 64

static const char *prefix;

static void *count_one(void *number)
{
	int is_in_word = 0, is_letter, fd;
	long words = 0;
	ssize_t got = -1, at;
	char path[4096];
	char *block = malloc(BLOCK);

	snprintf(path, sizeof(path), "%s%ld", prefix, (long)number);
	fd = open(path, O_RDONLY);
	while (fd >= 0 && block && (got = read(fd, block, BLOCK)) > 0)
		for (at = 0; at < got; at++) {
			is_letter = block[at] > ' ';
			words += is_letter && !is_in_word;
			is_in_word = is_letter;
		}
	return (void *)(long)(got != 0 || !words);
}

int main(int count, char **words)
{
	long number, wanted = count == 3 ? atol(words[2]) : 0;
	pthread_t threads[MOST];
	void *failed;
	int status = 0;

	if (wanted < 1 || wanted > MOST)
		return 2;
	prefix = words[1];
	for (number = 0; number < wanted; number++)
		if (pthread_create(&threads[number], NULL, count_one, (void *)(number + 1)))
			return 2;
	for (number = 0; number < wanted; number++) {
		pthread_join(threads[number], &failed);
		status |= failed != NULL;
	}
	return status;
}
