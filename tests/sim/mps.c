/*
 * tests/sim/mps.c: this process as a client of MPS, NVIDIA's Multi-Process Service: cuInit joins the
 * daemon if its control socket is there (mps_control.c), making a context asks for room. The process
 * leaves by closing the connection, which the kernel does for one that is killed. Kernels of a server's
 * clients run together (sharing.c); of a client that is given a part of the GPU they last longer.
 */
#include "sim.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "mps.h"

enum { MULTIPROCESSORS = 132 };

struct sim_mps sim_mps = {.percentage = 100, .multiprocessors = MULTIPROCESSORS};

static int connection = -1;

static bool answered(struct mps_answer *answer)
{
	struct pollfd from = {.fd = connection, .events = POLLIN};
	ssize_t n;

	do { /* through libc, where a tracer sees it */
		poll(&from, 1, -1);
		n = recv(connection, answer, sizeof(*answer), MSG_DONTWAIT);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	return n == sizeof(*answer);
}

static bool say(const struct mps_request *request)
{
	return send(connection, request, sizeof(*request), MSG_NOSIGNAL) == sizeof(*request);
}

static int user(void)
{
	const char *text = getenv("SPYSIM_UID");

	return text && *text ? (int)strtol(text, NULL, 10) : (int)getuid();
}

/* The part of a GPU that is this client's. As documented, a percentage is rounded down to what the
 * hardware can do; here to pairs of multiprocessors. */
static void take_share(double percentage)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	double own = text ? strtod(text, NULL) : 0;

	if (own > 0 && own < percentage)
		percentage = own;
	sim_mps.percentage = percentage;
	sim_mps.multiprocessors = (int)(MULTIPROCESSORS * percentage / 100) / 2 * 2;
	if (sim_mps.multiprocessors < 2)
		sim_mps.multiprocessors = 2;
}

static int join(void)
{
	struct mps_request request = {.what = MPS_JOIN, .pid = getpid(), .user = sim_mps.user};
	struct sim_wait wait = {.kind = WAIT_MPS, .begin_ns = sim_now_ns()};
	struct mps_answer answer;

	if (!say(&request) || !answered(&answer))
		return SIM_MPS_CONNECTION_FAILED;
	wait.end_ns = sim_now_ns();
	if (answer.result)
		return answer.result;
	sim_mps.client = true;
	sim_mps.server_pid = answer.server_pid;
	sim_mps.server_user = answer.server_user;
	if (answer.waited) {
		sim_mps.wait_ns = wait.end_ns - wait.begin_ns;
		sim_note_wait(&wait);
	}
	take_share(answer.percentage);
	return SIM_OK;
}

int sim_mps_init(void)
{
	struct sockaddr_un address;
	int rc;

	sim_mps.user = user();
	connection = mps_socket(&address);
	if (connection < 0)
		return SIM_OK;
	if (connect(connection, (struct sockaddr *)&address, sizeof(address))) {
		close(connection); /* no daemon: without MPS then */
		connection = -1;
		return SIM_OK;
	}
	rc = join();
	if (rc) {
		close(connection);
		connection = -1;
	}
	return rc;
}

int sim_mps_context_made(int gpu)
{
	static struct sim_spin asking;
	struct mps_request request = {
		.what = MPS_CONTEXT_MADE, .gpu = gpu, .limit = sim_script.mps_clients};
	struct mps_answer answer;
	bool ok;

	if (!sim_mps.client)
		return SIM_OK;
	sim_spin_lock(&asking);
	ok = say(&request) && answered(&answer);
	sim_spin_unlock(&asking);
	return ok ? answer.result : SIM_MPS_RPC_FAILURE;
}

void sim_mps_context_gone(int gpu)
{
	struct mps_request request = {.what = MPS_CONTEXT_GONE, .gpu = gpu};

	if (sim_mps.client)
		say(&request);
}

uint64_t sim_mps_stretch(uint64_t ns)
{
	return sim_mps.client ? ns * MULTIPROCESSORS / (uint64_t)sim_mps.multiprocessors : ns;
}

/* It is its parent that is the client. */
void sim_mps_fork_child(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
}
