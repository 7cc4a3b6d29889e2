/*
 * shim/describe/mps.c: does this process share its GPUs through MPS, NVIDIA's Multi-Process
 * Service, and with whose server? Runs on the thread that calls cuInit, before the call (where a
 * client waits while the server belongs to another user) and after it, outside the time that is
 * measured.
 *
 * The daemon's folder is CUDA_MPS_PIPE_DIRECTORY or /tmp/nvidia-mps; in it are a pipe called
 * control and nvidia-cuda-mps-control.pid. The server is a child of the daemon and runs as the user
 * whose clients it serves (NVIDIA, Multi-Process Service: "Architecture", "Tools and Interface
 * Reference"). What cannot be read, in another PID namespace say, is left 0: unknown.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "describe/describe.h"
#include "process/own_stack.h"
#include "state/session.h"

#define DEFAULT_DIRECTORY "/tmp/nvidia-mps"
#define VALUE_MAX (SPY_TEXT_MAX / 2) /* a reader takes no record of more than 4 * SPY_TEXT_MAX */
#define DAEMON_NAME "nvidia-cuda-mps-control"
#define SERVER_NAME "nvidia-cuda-mps-server"

/*
 * The first bytes of a file, ending in NUL. Returns how many, 0 for none. A folder in /tmp may
 * contain anything of any user's. What is no plain file is not opened: opening a pipe waits for its
 * writer, and opening a device has effects. It may also have become one between the two system
 * calls.
 */
static size_t read_start(const char *path, char *text, size_t size)
{
	struct stat status;
	ssize_t bytes;
	int file;

	text[0] = '\0';
	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return 0;
	file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (file < 0)
		return 0;
	bytes = read(file, text, size - 1);
	close(file);
	text[bytes > 0 ? bytes : 0] = '\0';
	return bytes > 0 ? (size_t)bytes : 0;
}

/* Is that process called so? Numbers in files can be old, or of another PID namespace; and a
 * child has its parent's name until it becomes another program. */
static bool is_called(uint32_t pid, const char *name)
{
	char path[64], command[256];
	const char *slash;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	if (!read_start(path, command, sizeof(command)))
		return false;
	slash = strrchr(command, '/');
	return !strcmp(slash ? slash + 1 : command, name);
}

static uint32_t daemon_of(const char *directory)
{
	char path[SPY_PATH_MAX], text[32];
	uint32_t pid;

	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", directory);
	read_start(path, text, sizeof(text));
	pid = (uint32_t)strtoul(text, NULL, 10);
	return pid && is_called(pid, DAEMON_NAME) ? pid : 0;
}

/* The daemon's child that serves this user, or else another one's. */
static void find_server(struct spy_rec_mps *mps)
{
	char path[64], children[512], *at = children, *end;
	struct stat status;

	if (!mps->daemon)
		return;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", mps->daemon, mps->daemon);
	read_start(path, children, sizeof(children));
	for (;; at = end) {
		uint32_t pid = (uint32_t)strtoul(at, &end, 10);

		if (end == at)
			return;
		snprintf(path, sizeof(path), "/proc/%u", pid);
		if (!is_called(pid, SERVER_NAME) || stat(path, &status) != 0)
			continue;
		mps->server = pid;
		mps->server_uid = status.st_uid;
		if (status.st_uid == mps->uid)
			return;
	}
}

static const char *value_of(const char *variable)
{
	const char *value = getenv(variable);

	return value ? value : "";
}

void spy_mps_look(bool initialised)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	struct spy_rec_mps mps = {.initialised = initialised, .uid = geteuid()}, *record;
	char path[SPY_PATH_MAX];
	const char *texts[4];
	size_t lengths[4], bytes = sizeof(mps), at = 0;

	if (!directory)
		directory = DEFAULT_DIRECTORY;
	snprintf(path, sizeof(path), "%s/control", directory);
	if (access(path, F_OK) != 0) {
		if (!initialised)
			return;
		directory = "";
	} else {
		mps.daemon = daemon_of(directory);
		find_server(&mps);
	}
	texts[0] = directory;
	texts[1] = value_of("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	texts[2] = value_of("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	texts[3] = value_of("CUDA_MPS_CLIENT_PRIORITY");
	for (int i = 0; i < 4; i++) {
		lengths[i] = strnlen(texts[i], (i ? VALUE_MAX : SPY_TEXT_MAX) - 1);
		bytes += lengths[i] + 1;
	}
	record = spy_session_append(SPY_EV_MPS, bytes);
	if (!record)
		return;
	mps.head = record->head;
	*record = mps;
	for (int i = 0; i < 4; i++) {
		memcpy(record->text + at, texts[i], lengths[i]);
		record->text[at + lengths[i]] = '\0';
		at += lengths[i] + 1;
	}
	spy_session_commit(bytes);
}

static void look_on_own_stack(void *unused)
{
	uint64_t begun = spy_overhead_begin();

	(void)unused;
	spy_mps_look(false);
	spy_overhead_end(spy_self, begun);
}

void spy_mps_driver_begins(void)
{
	if (spy_session_active() &&
	    !__atomic_exchange_n(&spy_session->driver_begun, true, __ATOMIC_RELAXED))
		spy_own_stack_run(look_on_own_stack, NULL);
}
