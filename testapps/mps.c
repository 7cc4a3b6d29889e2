/*
 * testapps/mps.c: with or without MPS: see mps.h. Called from main threads, in prepare of a crew.
 */
#include "mps.h"
#include "common.h"
#include "workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *pipe_directory(void)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return directory ? directory : "/tmp/nvidia-mps";
}

static bool pipe_there(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/control", pipe_directory());
	return access(path, F_OK) == 0;
}

/* Why a process is no client. */
static const char *obstacle(void)
{
	static char text[4096];

	if (pipe_there())
		snprintf(text, sizeof(text),
			 "there is an MPS control pipe in %s, but processes become no clients: is "
			 "its daemon dead, or somebody else's?",
			 pipe_directory());
	else
		snprintf(text, sizeof(text),
			 "no MPS daemon: no control pipe in %s (start one with "
			 "nvidia-cuda-mps-control -d, end it: echo quit | nvidia-cuda-mps-control)",
			 pipe_directory());
	return text;
}

void mps_avoid(void)
{
	if (setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1))
		die("out of memory");
}

/* cudaDevAttrMpsEnabled of driver_types.h, which the headers of older toolkits do not have. */
#define MPS_ENABLED ((enum cudaDeviceAttr)133)

static bool ask(int gpu, int *enabled)
{
	if (cudaDeviceGetAttribute(enabled, MPS_ENABLED, gpu) == cudaSuccess)
		return true;
	cudaGetLastError();
	return false;
}

bool mps_client(int gpu)
{
	int enabled;

	return ask(gpu, &enabled) && enabled;
}

/* As far as the driver tells. */
static bool may_be_client(int gpu)
{
	int enabled;

	if (ask(gpu, &enabled))
		return enabled;
	fprintf(stderr, "%s: this driver does not tell whether MPS is used\n", program);
	return true;
}

/* Instead of the work of a crew, which would die of a daemon that CUDA cannot reach. */
static void ask_and_exit(const struct crew *crew, int process)
{
	*(bool *)crew_state(crew, process) = cudaFree(NULL) == cudaSuccess && may_be_client(0);
	exit(0);
}

static bool process_is_client(void)
{
	struct crew crew = {
		.processes = 1, .threads = 1, .state_size = sizeof(bool), .enter = ask_and_exit};
	bool is;

	if (!pipe_there())
		return false;
	crew_run(&crew);
	is = *(bool *)crew_state(&crew, 0);
	crew_release(&crew);
	return is;
}

bool mps_there(void)
{
	bool there = process_is_client();

	if (!there && pipe_there())
		fprintf(stderr, "%s: without MPS: %s\n", program, obstacle());
	return there;
}

void mps_need(void)
{
	if (!process_is_client())
		die("%s", obstacle());
}

void mps_need_client(const struct worker *worker)
{
	if (worker->index == 0 && !may_be_client(worker->gpu))
		die("%s", obstacle());
}
