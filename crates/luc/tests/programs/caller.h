/* Shared by the parts of caller. */
#ifndef CALLER_H
#define CALLER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__,    \
				__LINE__, #condition, errno);                  \
			exit(1);                                               \
		}                                                              \
	} while (0)

int new_file(const char *name);

int case_exchange(void);
int case_exchange_in_handler(void);
int case_exchange_and_back(void);

#endif
