/*
 * A front end and a back end that are asked over unix sockets, or over TCP.
 *
 *   unix FOLDER|tcp SEED WORKERS CLIENTS REQUESTS
 *
 * Each of CLIENTS connections sends REQUESTS requests. For each the front end calls the back end three times:
 * with 0 workers one after the other by the thread that has read the request, else at once by WORKERS threads, which
 * get calls over a queue and hand results back. Says at its end which process the front end is, and a line for each
 * request that it has read and each call that it has sent: "read NUMBER TID BEFORE AFTER", "call NUMBER TID BEFORE
 * AFTER", where NUMBER is the request's and times are of CLOCK_MONOTONIC, in ns. Until then each thread has them in
 * memory of its own, as a lock would make threads wait for each other.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES 400
#define CALLS 3
#define MOST_LOGS 200

struct message {
	uint64_t number;
	uint64_t bytes;
	char room[MOST_BYTES];
};

/* A request, and how many of its calls have no answer yet. */
struct waiting {
	uint64_t number;
	int left;
	pthread_cond_t done;
};

struct job {
	struct waiting *request;
	struct job *next;
};

struct deed {
	const char *what;
	uint64_t number, before, after;
};

/* What a thread has done. */
struct log {
	long thread;
	size_t count, room;
	struct deed *deeds;
};

union address {
	struct sockaddr any;
	struct sockaddr_un local;
	struct sockaddr_in internet;
};

static struct log logs[MOST_LOGS];
static int logs_used;
static __thread struct log *own_log;
static union address front, back;
static socklen_t address_bytes;
static unsigned int seed;
static int workers, clients, requests;
static struct job *first, **last = &first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_job = PTHREAD_COND_INITIALIZER;

static void check(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(2);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static void say(const char *what, uint64_t number, uint64_t before)
{
	struct deed deed = { what, number, before, now() };

	if (!own_log) {
		int place = __atomic_fetch_add(&logs_used, 1, __ATOMIC_RELAXED);

		check(place < MOST_LOGS, "too many threads");
		own_log = &logs[place];
		own_log->thread = syscall(SYS_gettid);
	}
	if (own_log->count == own_log->room) {
		own_log->room = 2 * own_log->room + 1024;
		own_log->deeds = realloc(own_log->deeds, own_log->room * sizeof(deed));
		check(own_log->deeds != NULL, "memory");
	}
	own_log->deeds[own_log->count++] = deed;
}

static void say_all(void)
{
	for (int place = 0; place < logs_used; place++) {
		for (size_t at = 0; at < logs[place].count; at++) {
			struct deed *deed = &logs[place].deeds[at];

			printf("%s %llu %ld %llu %llu\n", deed->what, (unsigned long long)deed->number,
			       logs[place].thread, (unsigned long long)deed->before,
			       (unsigned long long)deed->after);
		}
	}
	fflush(stdout);
}

static void put(int fd, uint64_t number, unsigned int *random)
{
	struct message message = { .number = number, .bytes = rand_r(random) % MOST_BYTES };
	size_t bytes = sizeof(message) - MOST_BYTES + message.bytes;

	check(write(fd, &message, bytes) == (ssize_t)bytes, "write");
}

/* 0 at the end. */
static int get(int fd, struct message *message)
{
	size_t head = sizeof(*message) - MOST_BYTES;
	ssize_t got = recv(fd, message, head, MSG_WAITALL);

	if (!got)
		return 0;
	check(got == (ssize_t)head, "receive");
	return 1;
}

static void get_rest(int fd, struct message *message)
{
	if (message->bytes)
		check(recv(fd, message->room, message->bytes, MSG_WAITALL) ==
			      (ssize_t)message->bytes, "receive");
}

static int prompt(int fd)
{
	int on = 1;

	if (front.any.sa_family == AF_INET)
		check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
	return fd;
}

static int connected(const union address *to)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM, 0);

	check(!connect(fd, &to->any, address_bytes), "connect");
	return prompt(fd);
}

/* Of TCP at a port that is free, which is noted. */
static int listening(union address *at)
{
	int fd = socket(at->any.sa_family, SOCK_STREAM, 0);
	socklen_t bytes = address_bytes;

	check(!bind(fd, &at->any, bytes), "bind");
	check(!listen(fd, 100), "listen");
	if (at->any.sa_family == AF_INET)
		check(!getsockname(fd, &at->any, &bytes), "getsockname");
	return fd;
}

static void name(union address *address, const char *folder, const char *file)
{
	if (!strcmp(folder, "tcp")) {
		address->internet.sin_family = AF_INET;
		address->internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		address_bytes = sizeof(address->internet);
		return;
	}
	address->local.sun_family = AF_UNIX;
	snprintf(address->local.sun_path, sizeof(address->local.sun_path), "%s/%s", folder, file);
	address_bytes = sizeof(address->local);
}

static void begin(void *(*run)(void *), long argument)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, run, (void *)argument), "thread");
}

static void serve(int listener, void *(*run)(void *))
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		check(fd >= 0, "accept");
		begin(run, prompt(fd));
	}
}

static void *answer_calls(void *argument)
{
	int fd = (int)(long)argument;
	unsigned int random = seed + fd;
	struct message message;

	while (get(fd, &message)) {
		get_rest(fd, &message);
		usleep(rand_r(&random) % 500);
		put(fd, message.number, &random);
	}
	return NULL;
}

static void call(int fd, uint64_t number, unsigned int *random)
{
	struct message message;
	uint64_t before = now();

	put(fd, number, random);
	say("call", number, before);
	check(get(fd, &message), "answer");
	get_rest(fd, &message);
}

static void *work(void *argument)
{
	unsigned int random = seed + 1000 + (long)argument;
	int fd = connected(&back);
	struct job *job;

	for (;;) {
		pthread_mutex_lock(&lock);
		while (!first)
			pthread_cond_wait(&has_job, &lock);
		job = first;
		first = job->next;
		if (!first)
			last = &first;
		pthread_mutex_unlock(&lock);
		call(fd, job->request->number, &random);
		pthread_mutex_lock(&lock);
		job->request->left--;
		pthread_cond_signal(&job->request->done);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void hand_over(uint64_t number)
{
	struct waiting request = { number, CALLS, PTHREAD_COND_INITIALIZER };
	struct job jobs[CALLS];

	pthread_mutex_lock(&lock);
	for (int at = 0; at < CALLS; at++) {
		jobs[at] = (struct job){ .request = &request };
		*last = &jobs[at];
		last = &jobs[at].next;
		pthread_cond_signal(&has_job);
	}
	while (request.left)
		pthread_cond_wait(&request.done, &lock);
	pthread_mutex_unlock(&lock);
}

static void *answer_requests(void *argument)
{
	int fd = (int)(long)argument, own = workers ? -1 : connected(&back);
	unsigned int random = seed + 2000 + fd;
	struct message message;
	uint64_t before;

	for (before = now(); get(fd, &message); before = now()) {
		say("read", message.number, before);
		get_rest(fd, &message);
		if (workers)
			hand_over(message.number);
		for (int at = 0; !workers && at < CALLS; at++)
			call(own, message.number, &random);
		put(fd, message.number, &random);
	}
	return NULL;
}

static void *ask(void *argument)
{
	long client = (long)argument;
	unsigned int random = seed + 3000 + client;
	int fd = connected(&front), at;
	struct message message;

	for (at = 0; at < requests; at++) {
		put(fd, client * requests + at, &random);
		check(get(fd, &message), "answer");
		get_rest(fd, &message);
		usleep(rand_r(&random) % 300);
	}
	return NULL;
}

/* A child that ends with this process. */
static pid_t child(void)
{
	pid_t process = fork();

	check(process >= 0, "fork");
	if (!process)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return process;
}

int main(int count, char **words)
{
	int front_listener, back_listener, status;
	pthread_t threads[100];
	pid_t of_clients;
	long at;

	if (count != 6)
		return 2;
	name(&front, words[1], "front");
	name(&back, words[1], "back");
	seed = 10000 * atoi(words[2]);
	workers = atoi(words[3]);
	clients = atoi(words[4]);
	requests = atoi(words[5]);
	front_listener = listening(&front);
	back_listener = listening(&back);
	if (!child())
		serve(back_listener, answer_calls);
	of_clients = child();
	if (!of_clients) {
		for (at = 0; at < clients; at++)
			check(!pthread_create(&threads[at], NULL, ask, (void *)at), "thread");
		for (at = 0; at < clients; at++)
			pthread_join(threads[at], NULL);
		_exit(0);
	}
	printf("front %d\n", getpid());
	for (at = 0; at < workers; at++)
		begin(work, at);
	for (at = 0; at < clients; at++)
		begin(answer_requests, prompt(accept(front_listener, NULL, NULL)));
	check(waitpid(of_clients, &status, 0) == of_clients, "wait");
	say_all();
	return status != 0;
}
