/*
 * tests/bench/bench_ranges.c: what a range costs that the program announces by NVTX: a push and a
 * pop, right behind each other. tests/bench/run starts this program bare (NVTX finds no tool then)
 * and recorded; it knows of neither.
 *
 *   bench_ranges [--ms N]   ns per push and pop, N milliseconds of each kind
 *
 * The lines are those of bench_calls: name, threads, median, mean, number.
 */
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIRS 1000 /* in a round, of which the mean is one value */
#define ROUNDS_MAX 100000

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t registered = {.version = NVTX_VERSION,
					   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					   .messageType = NVTX_MESSAGE_TYPE_REGISTERED};

/* As PyTorch does it, and as libraries do. */
static void plain(void)
{
	nvtxRangePushA("aten::linear_backward");
	nvtxRangePop();
}

static void in_domain(void)
{
	nvtxDomainRangePushEx(domain, &registered);
	nvtxDomainRangePop(domain);
}

static int by_size(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void measure(const char *name, void (*pair)(void), double ms)
{
	static double values[ROUNDS_MAX];
	double end = now_ns() + ms * 1e6, sum = 0;
	size_t n = 0, i;

	while (n < ROUNDS_MAX && (now_ns() < end || n < 3)) {
		double begin = now_ns();

		for (i = 0; i < PAIRS; i++)
			pair();
		values[n++] = (now_ns() - begin) / PAIRS;
	}
	qsort(values, n, sizeof(values[0]), by_size);
	for (i = 0; i < n; i++)
		sum += values[i];
	printf("%s\t1\t%.2f\t%.2f\t%zu\n", name, values[n / 2], sum / (double)n, n);
}

int main(int argc, char **argv)
{
	double ms = argc > 2 && !strcmp(argv[1], "--ms") ? atof(argv[2]) : 20;
	int version;

	/* From its first call on a thread's ranges are recorded. */
	if (cuInit(0) || cuDriverGetVersion(&version)) {
		fprintf(stderr, "bench_ranges: no CUDA driver\n");
		return 1;
	}
	domain = nvtxDomainCreateA("bench");
	registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	measure("plain", plain, ms);
	measure("registered", in_domain, ms);
	return 0;
}
