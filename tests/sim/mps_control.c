/*
 * tests/sim/mps_control.c: a look-alike of nvidia-cuda-mps-control, MPS's control daemon, and of the
 * servers it starts, as far as a client notices them. A program of its own, one thread.
 *
 *   nvidia-cuda-mps-control -d        starts the daemon and returns when clients can join
 *   nvidia-cuda-mps-control -f        the same in the foreground
 *   echo COMMAND | nvidia-cuda-mps-control    get_server_list, get_client_list PID,
 *                                     get_default_active_thread_percentage, set_... P, quit [-t SECONDS]
 *
 * The pipe directory has the socket `control` and nvidia-cuda-mps-control.pid while the daemon runs. A
 * client is an open connection (mps.h). The first one makes the daemon start a server for its user;
 * clients of the same user join it. Who belongs to another user waits until the server's clients have
 * left, whereupon it is ended and the next is started; and so does whoever comes after him, so that
 * nobody is overtaken. The daemon does the server's bookkeeping; the server is a process with the right
 * name that ends with its daemon. If it dies, its clients' connections are closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mps.h"

#define SERVER "nvidia-cuda-mps-server"

enum { PEERS_MAX = 1024, GPUS_MAX = 16, CONNECTION_FAILED = 805, MAX_CLIENTS_REACHED = 808 };

struct peer {
	int fd, pid, user;
	enum { STRANGER, WAITING, CLIENT } state;
	bool waited; /* for another user's server */
	int contexts[GPUS_MAX];
};

static struct peer peers[PEERS_MAX]; /* in the order in which they came */
static int peer_cnt;
static struct {
	int fd, pid, user; /* fd: a connection that lasts as long as either side */
} server = {.fd = -1};
static int listener = -1;
static double percentage = 100;
static bool quitting;
static time_t deadline; /* of clients, when quitting; 0: none */

static void die(const char *what)
{
	fprintf(stderr, "nvidia-cuda-mps-control: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the server ---- */
static int be_server(void)
{
	char byte = 'r';

	if (write(0, &byte, 1) == 1)
		while (read(0, &byte, 1) > 0)
			;
	return 0;
}

static bool start_server(int user)
{
	char path[4096] = "", byte, *const arguments[] = {SERVER, NULL};
	int pair[2], program;

	if (readlink("/proc/self/exe", path, sizeof(path) - sizeof(SERVER) - 1) < 0)
		return false;
	strcpy(strrchr(path, '/') + 1, SERVER);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	program = open(path, O_PATH | O_CLOEXEC); /* its user may not be let into the folder */
	server.pid = fork();
	if (!server.pid) {
		dup2(pair[1], 0);
		if (getuid() == 0 && user > 0 && setuid((uid_t)user))
			_exit(127); /* the server is its user's, for all to see in /proc */
		fexecve(program, arguments, environ);
		_exit(127);
	}
	close(program);
	close(pair[1]);
	server.fd = pair[0];
	server.user = user;
	return server.pid > 0 && read(server.fd, &byte, 1) == 1;
}

static void end_server(void)
{
	if (server.fd < 0)
		return;
	close(server.fd);
	server.fd = -1;
	if (server.pid > 0)
		waitpid(server.pid, NULL, 0);
}

/* ---- clients ---- */
static int client_cnt(void)
{
	int cnt = 0;

	for (int i = 0; i < peer_cnt; i++)
		cnt += peers[i].state == CLIENT;
	return cnt;
}

static void answer(const struct peer *peer, const struct mps_answer *with)
{
	send(peer->fd, with, sizeof(*with), MSG_NOSIGNAL);
}

/* Takes in who waits, in order, as far as that goes. */
static void admit(void)
{
	bool stop = false;

	for (int i = 0; i < peer_cnt; i++) {
		struct peer *peer = &peers[i];
		struct mps_answer welcome = {.result = CONNECTION_FAILED};

		if (peer->state != WAITING)
			continue;
		if (server.fd >= 0 && server.user != peer->user) {
			stop = stop || client_cnt() > 0;
			if (!stop)
				end_server();
		}
		if (stop) {
			peer->waited = true;
			continue;
		}
		if (server.fd >= 0 || start_server(peer->user)) {
			welcome.result = 0;
			welcome.server_pid = server.pid;
			welcome.server_user = server.user;
			welcome.waited = peer->waited;
			welcome.percentage = percentage;
		} else {
			end_server();
		}
		peer->state = welcome.result ? STRANGER : CLIENT;
		answer(peer, &welcome);
	}
}

static void drop(int i)
{
	close(peers[i].fd);
	peer_cnt--;
	memmove(&peers[i], &peers[i + 1], (size_t)(peer_cnt - i) * sizeof(peers[0]));
}

static void make_context(struct peer *peer, const struct mps_request *request)
{
	struct mps_answer room = {.result = 0};
	int cnt = 0;

	for (int i = 0; i < peer_cnt; i++)
		cnt += peers[i].contexts[request->gpu];
	if (cnt >= request->limit)
		room.result = MAX_CLIENTS_REACHED;
	else
		peer->contexts[request->gpu]++;
	answer(peer, &room);
}

/* ---- commands ---- */
static void unlink_files(void)
{
	char path[4096];

	if (mps_path(path, sizeof(path), "control"))
		unlink(path);
	if (mps_path(path, sizeof(path), "nvidia-cuda-mps-control.pid"))
		unlink(path);
}

/* No new clients; those who are there may end, by the deadline. */
static void quit(const char *options)
{
	int seconds;

	if (sscanf(options, " -t %d", &seconds) == 1)
		deadline = time(NULL) + seconds;
	quitting = true;
	unlink_files();
}

static void stop_listening(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
	for (int i = peer_cnt; i--;)
		if (peers[i].state == WAITING)
			drop(i);
}

static void list_clients(const char *server_pid, char *text, size_t bytes)
{
	size_t at = 0;

	if (server.fd < 0 || atoi(server_pid) != server.pid)
		return;
	for (int i = 0; i < peer_cnt && at < bytes; i++)
		if (peers[i].state == CLIENT)
			at += (size_t)snprintf(text + at, bytes - at, "%d\n", peers[i].pid);
}

static void command(const struct peer *peer, const char *line)
{
	static const char set[] = "set_default_active_thread_percentage ";
	struct mps_answer said = {.result = 0};
	double number;

	if (!strncmp(line, "quit", 4)) {
		quit(line + 4);
		if (!client_cnt())
			return; /* who asked sees us end */
	} else if (!strcmp(line, "get_server_list")) {
		if (server.fd >= 0)
			snprintf(said.text, sizeof(said.text), "%d\n", server.pid);
	} else if (!strncmp(line, "get_client_list ", 16)) {
		list_clients(line + 16, said.text, sizeof(said.text));
	} else if (!strncmp(line, set, strlen(set)) ||
		   !strcmp(line, "get_default_active_thread_percentage")) {
		number = line[0] == 's' ? strtod(line + strlen(set), NULL) : percentage;
		if (number > 0 && number <= 100)
			percentage = number;
		snprintf(said.text, sizeof(said.text), "%.1f\n", percentage);
	} else {
		snprintf(said.text, sizeof(said.text), "Unknown command: %s\n", line);
	}
	answer(peer, &said);
}

/* ---- the daemon ---- */
static void hear(int i)
{
	struct peer *peer = &peers[i];
	struct mps_request request;
	ssize_t n = recv(peer->fd, &request, sizeof(request), 0);

	if (n != sizeof(request) || request.gpu < 0 || request.gpu >= GPUS_MAX) {
		drop(i);
		return;
	}
	switch (request.what) {
	case MPS_JOIN:
		peer->state = WAITING;
		peer->pid = request.pid;
		peer->user = request.user;
		break;
	case MPS_CONTEXT_MADE:
		make_context(peer, &request);
		break;
	case MPS_CONTEXT_GONE:
		peer->contexts[request.gpu]--;
		break;
	case MPS_COMMAND:
		request.command[sizeof(request.command) - 1] = '\0';
		command(peer, request.command);
		break;
	}
}

static void let_in(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		peers[peer_cnt++] = (struct peer){.fd = fd};
}

static void lose_server(void)
{
	end_server();
	for (int i = peer_cnt; i--;)
		if (peers[i].state == CLIENT)
			drop(i);
}

static void serve(void)
{
	while (!quitting || client_cnt()) {
		struct pollfd fds[PEERS_MAX + 2];
		int cnt = peer_cnt;

		for (int i = 0; i < cnt; i++)
			fds[i] = (struct pollfd){.fd = peers[i].fd, .events = POLLIN};
		fds[cnt] = (struct pollfd){.fd = server.fd, .events = POLLIN};
		fds[cnt + 1] =
			(struct pollfd){.fd = cnt < PEERS_MAX ? listener : -1, .events = POLLIN};
		poll(fds, (nfds_t)cnt + 2, deadline ? 100 : -1);
		if (deadline && time(NULL) >= deadline)
			break;
		for (int i = cnt;
		     i--;) /* from behind: who drops out moves none that is yet to come */
			if (fds[i].revents)
				hear(i);
		if (fds[cnt].revents)
			lose_server();
		if (quitting)
			stop_listening();
		else if (fds[cnt + 1].revents)
			let_in();
		admit();
	}
	stop_listening();
	end_server();
}

static void write_pid(void)
{
	char path[4096];
	FILE *file = NULL;

	if (mps_path(path, sizeof(path), "nvidia-cuda-mps-control.pid"))
		file = fopen(path, "we");
	if (!file)
		die("cannot write the pid file");
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
}

static void start(bool background)
{
	struct sockaddr_un address;
	const char *share = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	char folder[4096];

	listener = mps_socket(&address);
	if (listener < 0)
		die("the pipe directory's name is too long");
	if (!connect(listener, (struct sockaddr *)&address, sizeof(address))) {
		fprintf(stderr, "An instance of this daemon is already running\n");
		exit(1);
	}
	if (mps_path(folder, sizeof(folder), ""))
		mkdir(folder, 0755);
	unlink(address.sun_path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(address.sun_path, 0666) || listen(listener, 128))
		die(address.sun_path);
	if (share && strtod(share, NULL) > 0 && strtod(share, NULL) <= 100)
		percentage = strtod(share, NULL);
	if (background) {
		pid_t pid = fork();
		int null;

		if (pid < 0)
			die("fork");
		if (pid) {
			/* Not before the pid file is there, which is the child's to write. */
			struct mps_request ping = {.what = MPS_COMMAND,
						   .command = "get_server_list"};
			struct mps_answer pong;
			int fd = mps_socket(&address);

			if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
			    send(fd, &ping, sizeof(ping), 0) < 0 ||
			    recv(fd, &pong, sizeof(pong), 0) <= 0)
				die("the daemon did not start");
			_exit(0);
		}
		setsid();
		null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		for (int fd = 3; fd < 256; fd++) /* a test's pipes would not end otherwise */
			if (fd != listener)
				close(fd);
	}
	write_pid();
	serve();
}

/* ---- commands' side ---- */
static int send_command(char *line)
{
	struct mps_request request = {.what = MPS_COMMAND};
	struct mps_answer said;
	struct sockaddr_un address;
	int fd = mps_socket(&address);

	line[strcspn(line, "\n")] = '\0';
	if (!*line)
		return 0;
	strcpy(request.command, line);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    send(fd, &request, sizeof(request), MSG_NOSIGNAL) < 0) {
		fprintf(stderr, "Cannot find MPS control daemon process\n");
		return 1;
	}
	if (recv(fd, &said, sizeof(said), 0) == sizeof(said))
		fputs(said.text, stdout);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	char line[sizeof(((struct mps_request *)0)->command)];
	int status = 0;

	if (!strcmp(name ? name + 1 : argv[0], SERVER))
		return be_server();
	if (argc == 2 && (!strcmp(argv[1], "-d") || !strcmp(argv[1], "-f"))) {
		start(argv[1][1] == 'd');
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: nvidia-cuda-mps-control [-d | -f]\n");
		return 2;
	}
	while (!status && fgets(line, sizeof(line), stdin))
		status = send_command(line);
	return status;
}
