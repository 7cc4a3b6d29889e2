/*
 * testapps/mps.h: whether this process will share its GPU with others through MPS (NVIDIA's
 * Multi-Process Service), and how to choose. CUDA looks for the daemon's control pipe once, when it is
 * initialised, in CUDA_MPS_PIPE_DIRECTORY or /tmp/nvidia-mps: so call these before any CUDA call.
 */
#ifndef TESTAPPS_MPS_H
#define TESTAPPS_MPS_H

#include <stdbool.h>

/* Whether a daemon's control pipe is where CUDA would look for it. */
bool mps_daemon_there(void);

/* Dies with what to do if there is no daemon. */
void mps_need(void);

/* This process will not be a client, whatever daemon runs: it shares GPUs by time slices. */
void mps_avoid(void);

/* Whether the driver says that this process is a client on this device, once CUDA is initialised. A
 * driver too old to know the question says no; mps_can_tell says whether it does. */
bool mps_client(int gpu);
bool mps_can_tell(int gpu);

#endif
