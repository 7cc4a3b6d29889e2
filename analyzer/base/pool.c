/*
 * analyzer/base/pool.c: pieces of work, done by several threads. Called by all readings.
 */
#include <pthread.h>
#include <stdlib.h>
#include "pool.h"
#include "util.h"

/* So many pieces for each thread may be finished and wait for the one before them. */
#define AHEAD_EACH 4

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t n, next, most_ahead;
	size_t n_done; /* those before it are done */
	bool finishing; /* a thread calls `done` */
	bool *finished; /* by piece */
	void (*work)(void *data, size_t i);
	void (*done)(void *data, size_t i);
	void *data;
};

static void finish(struct pool *p)
{
	if (p->finishing)
		return;
	p->finishing = true;
	while (p->n_done < p->n && p->finished[p->n_done]) {
		pthread_mutex_unlock(&p->lock);
		p->done(p->data, p->n_done);
		pthread_mutex_lock(&p->lock);
		p->n_done++;
	}
	p->finishing = false;
	pthread_cond_broadcast(&p->changed);
}

static void *work(void *data)
{
	struct pool *p = data;

	pthread_mutex_lock(&p->lock);
	while (p->next < p->n) {
		size_t i;

		if (p->next >= p->n_done + p->most_ahead) {
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		i = p->next++;
		pthread_mutex_unlock(&p->lock);
		p->work(p->data, i);
		pthread_mutex_lock(&p->lock);
		p->finished[i] = true;
		finish(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void pool_run(unsigned int jobs, size_t n, void (*work_on)(void *data, size_t i),
	      void (*done)(void *data, size_t i), void *data)
{
	struct pool p = {.n = n,
			 .most_ahead = (size_t)AHEAD_EACH * (jobs ?: 1),
			 .finished = xcalloc(n, sizeof(*p.finished)),
			 .work = work_on,
			 .done = done,
			 .data = data};
	pthread_t *threads = xcalloc(jobs, sizeof(*threads));
	unsigned int i, started = 0;

	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.changed, NULL);
	for (i = 1; i < jobs && i < n; i++)
		if (!pthread_create(&threads[started], NULL, work, &p))
			started++;
	work(&p);
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&p.changed);
	pthread_mutex_destroy(&p.lock);
	free(threads);
	free(p.finished);
}
