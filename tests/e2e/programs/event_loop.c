/*
 * tests/e2e/programs/event_loop.c: a server whose loop waits for the GPU between two polls, and near twins, on the simulator,
 * for test_event_loop.sh. Clients are threads: each sends a request, waits for the reply, and sends the next.
 *
 *   event_loop epoll | poll | select    four clients: while one is served, the others' requests wait
 *   event_loop one                      one client: nothing waits but what is being served
 *   event_loop turns                    four, of which the next one sends a while after the last one has its reply
 *   event_loop elsewhere                four, and another thread waits for the GPU and signals the loop
 *   event_loop spin                     four, and the loop never waits for a request: it looks, as a library for messages does
 *   event_loop unasked                  no client: between two steps the loop looks, without waiting, for requests
 *   event_loop reply                    no loop: a reply of a worker is polled for, which is there when the GPU is done
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
#include "sim_program.h"

enum { CLIENTS = 4, REQUESTS = 120, KERNEL_US = 3000, THINK_US = 4000 };

static char stub_delay;
static const char *mode;
static void *stream;
static int n_clients = CLIENTS, ends[CLIENTS][2]; /* the server's, the client's */
static int epoll_fd, event_fd;
static int served;

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

static void pause_us(long us)
{
	struct timespec time = {0, us * 1000};

	nanosleep(&time, NULL);
}

static void work(void)
{
	int us = KERNEL_US;
	void *args[] = {&us};

	OK(cudaLaunchKernel(&stub_delay, (struct dim3){1, 1, 1}, (struct dim3){32, 1, 1}, args, 0,
			    stream));
	OK(cudaStreamSynchronize(stream)); /* mark: wait */
}

static void get(int fd, void *to, size_t bytes)
{
	if (read(fd, to, bytes) != (ssize_t)bytes)
		die("nothing to read");
}

static void put(int fd, const void *from, size_t bytes)
{
	if (write(fd, from, bytes) != (ssize_t)bytes)
		die("cannot write");
}

/* ---- clients ----------------------------------------------------------------------------------- */

static sem_t turn[CLIENTS];

static void *client(void *data)
{
	int self = *(int *)data;
	char request = 'x';

	for (int i = 0; i < REQUESTS / n_clients; i++) {
		if (is("turns")) {
			sem_wait(&turn[self]);
			pause_us(THINK_US);
		}
		put(ends[self][1], &request, 1);
		get(ends[self][1], &request, 1);
		sem_post(&turn[(self + 1) % CLIENTS]);
	}
	return NULL;
}

/* ---- who waits for the GPU elsewhere -------------------------------------------------------------- */

static int queue[REQUESTS], done[REQUESTS];
static sem_t queued;

static void *worker(void *data)
{
	uint64_t one = 1;

	for (int i = 0; i < REQUESTS; i++) {
		sem_wait(&queued);
		work();
		done[i] = queue[i];
		put(event_fd, &one, sizeof(one));
	}
	return data;
}

static void hand_over(int i)
{
	static int handed;
	char request;

	get(ends[i][0], &request, 1);
	queue[handed++] = i;
	sem_post(&queued);
}

static void answer_done(void)
{
	uint64_t n;

	for (get(event_fd, &n, sizeof(n)); n; n--)
		put(ends[done[served++]][0], "y", 1);
}

/* ---- the loop ----------------------------------------------------------------------------------- */

static void serve(int i)
{
	char request;

	if (i == CLIENTS) {
		answer_done();
		return;
	}
	if (is("elsewhere")) {
		hand_over(i);
		return;
	}
	get(ends[i][0], &request, 1);
	work();
	put(ends[i][0], &request, 1);
	served++;
}

static void watch(int fd, int i)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

static void loop_epoll(void)
{
	struct epoll_event events[CLIENTS + 1];
	int timeout = is("spin") ? 0 : -1, n;

	epoll_fd = epoll_create1(0);
	for (int i = 0; i < n_clients; i++)
		watch(ends[i][0], i);
	watch(event_fd, CLIENTS);
	while (served < REQUESTS) {
		n = epoll_wait(epoll_fd, events, CLIENTS + 1, timeout); /* mark: epoll */
		for (int i = 0; i < n; i++)
			serve((int)events[i].data.u32);
	}
}

static void loop_poll(void)
{
	struct pollfd all[CLIENTS];

	while (served < REQUESTS) {
		for (int i = 0; i < CLIENTS; i++)
			all[i] = (struct pollfd){.fd = ends[i][0], .events = POLLIN};
		if (poll(all, CLIENTS, -1) < 0) /* mark: poll */
			die("poll");
		for (int i = 0; i < CLIENTS; i++)
			if (all[i].revents)
				serve(i);
	}
}

static void loop_select(void)
{
	fd_set all;

	while (served < REQUESTS) {
		FD_ZERO(&all);
		for (int i = 0; i < CLIENTS; i++)
			FD_SET(ends[i][0], &all);
		if (select(ends[CLIENTS - 1][0] + 1, &all, NULL, NULL, NULL) < 0) /* mark: select */
			die("select");
		for (int i = 0; i < CLIENTS; i++)
			if (FD_ISSET(ends[i][0], &all))
				serve(i);
	}
}

static void loop_unasked(void)
{
	struct epoll_event event;

	epoll_fd = epoll_create1(0);
	for (int i = 0; i < CLIENTS; i++)
		watch(ends[i][0], i);
	for (; served < REQUESTS; served++) {
		if (epoll_wait(epoll_fd, &event, 1, 0))
			die("a request");
		work();
	}
}

static void reply(void)
{
	struct pollfd one = {.fd = ends[0][0], .events = POLLIN};
	char byte = 'x';

	for (; served < REQUESTS; served++) {
		put(ends[0][1], &byte, 1); /* as a worker does meanwhile */
		work();
		if (poll(&one, 1, -1) != 1)
			die("poll");
		get(ends[0][0], &byte, 1);
	}
}

static void loop(void)
{
	if (is("poll"))
		loop_poll();
	else if (is("select"))
		loop_select();
	else if (is("unasked"))
		loop_unasked();
	else if (is("reply"))
		reply();
	else
		loop_epoll();
}

int main(int argc, char **argv)
{
	static int numbers[CLIENTS];
	pthread_t threads[CLIENTS], waits;
	bool alone;

	mode = argc > 1 ? argv[1] : "epoll";
	alone = is("unasked") || is("reply");
	if (is("one"))
		n_clients = 1;
	register_kernels(&stub_delay, NULL, 0);
	OK(cudaStreamCreateWithFlags(&stream, 1));
	event_fd = eventfd(0, 0);
	sem_init(&queued, 0, 0);
	for (int i = 0; i < CLIENTS; i++) {
		sem_init(&turn[i], 0, i == 0);
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]))
			die("socketpair");
	}
	for (int i = 0; i < n_clients && !alone; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, client, &numbers[i]);
	}
	if (is("elsewhere"))
		pthread_create(&waits, NULL, worker, NULL);
	loop();
	for (int i = 0; i < n_clients && !alone; i++)
		pthread_join(threads[i], NULL);
	if (is("elsewhere"))
		pthread_join(waits, NULL);
	printf("%d served\n", served);
	return 0;
}
