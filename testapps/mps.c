/*
 * testapps/mps.c: with or without MPS: see mps.h. Called from main threads.
 */
#include "mps.h"
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *pipe_directory(void)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return directory ? directory : "/tmp/nvidia-mps";
}

bool mps_daemon_there(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/control", pipe_directory());
	return access(path, F_OK) == 0;
}

void mps_need(void)
{
	if (!mps_daemon_there())
		die("no MPS daemon: no control pipe in %s (start one with "
		    "nvidia-cuda-mps-control -d, end it with echo quit | nvidia-cuda-mps-control)",
		    pipe_directory());
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

bool mps_can_tell(int gpu)
{
	int enabled;

	return ask(gpu, &enabled);
}
