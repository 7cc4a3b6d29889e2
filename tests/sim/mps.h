/*
 * tests/sim/mps.h: what clients and commands say to the look-alike of the MPS control daemon, through
 * the socket `control` in the pipe directory: one packet each way. Included by mps.c (the driver's side)
 * and mps_control.c (the daemon's).
 */
#ifndef SIM_MPS_H
#define SIM_MPS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum mps_what { MPS_JOIN, MPS_CONTEXT_MADE, MPS_CONTEXT_GONE, MPS_COMMAND };

struct mps_request {
	enum mps_what what;
	int pid, user; /* of who joins */
	int gpu, limit; /* of a context; how many there may be */
	char command[80];
};

/* To a client that has joined, to a context that was made, to a command. */
struct mps_answer {
	int result; /* 0, or an error of CUDA's */
	int server_pid, server_user;
	bool waited; /* for another user's server */
	double percentage; /* of each GPU's multiprocessors */
	char text[1024];
};

/* CUDA_MPS_PIPE_DIRECTORY or its default, and in it the file. False: the path is too long. */
static inline bool mps_path(char *path, size_t bytes, const char *file)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return (size_t)snprintf(path, bytes, "%s/%s",
				folder && *folder ? folder : "/tmp/nvidia-mps", file) < bytes;
}

/* A socket with the daemon's address, or -1. */
static inline int mps_socket(struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	return mps_path(address->sun_path, sizeof(address->sun_path), "control")
		       ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)
		       : -1;
}

#endif
