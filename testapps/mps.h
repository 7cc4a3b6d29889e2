/*
 * testapps/mps.h: whether this process will share its GPU with others through MPS (NVIDIA's
 * Multi-Process Service), and how to choose. CUDA looks for the daemon's control pipe once, when it is
 * initialised, in CUDA_MPS_PIPE_DIRECTORY or /tmp/nvidia-mps: so call the first three before any CUDA
 * call.
 */
#ifndef TESTAPPS_MPS_H
#define TESTAPPS_MPS_H

#include <stdbool.h>

struct worker;

/* Whether a process becomes a client, which one that is started for it asks the driver: a dead daemon
 * leaves its pipe behind. Where there is a pipe and no client, says so on stderr. */
bool mps_there(void);

/* Dies with what to do if it is not so. */
void mps_need(void);

/* This process will not be a client, whatever daemon runs: it shares GPUs by time slices. */
void mps_avoid(void);

/* Whether the driver says that this process is a client on this device, once CUDA is initialised. A
 * driver too old to know the question says no. */
bool mps_client(int gpu);

/* In prepare: dies with what to do if the driver knows that this process is none. The first worker
 * speaks for the crew. */
void mps_need_client(const struct worker *worker);

#endif
