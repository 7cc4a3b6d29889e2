/*
 * analyzer/live/ras.c: asks NCCL's RAS. Called by `snapshot --ras`.
 */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ras.h"
#include "verdict.h"

#define ANSWER_MOST ((size_t)1 << 20) /* bytes */
#define RAS_TIMEOUT_S 5 /* that it is to wait for ranks; its own default */

/* ---- the conversation ------------------------------------------------------------------------ */

struct talk {
	int fd;
	uint64_t until_ns;
	char *text; /* received; ends in NUL */
	size_t n;
};

/* HOST, HOST:PORT, [HOST]:PORT or HOST with colons of its own. */
static void split_address(const char *address, char **host, char **port)
{
	const char *colon = strrchr(address, ':'), *end = strchr(address, ']');
	size_t n;

	if (address[0] == '[' && end) {
		*host = xstrndup(address + 1, (size_t)(end - address) - 1);
		*port = xstrdup(end[1] == ':' ? end + 2 : "28028");
		return;
	}
	n = colon && strchr(address, ':') == colon ? (size_t)(colon - address) : strlen(address);
	*host = xstrndup(address, n);
	*port = xstrdup(address[n] ? address + n + 1 : "28028");
}

/* Until the socket can be read or written, or the time is over. */
static int wait_for(const struct talk *t, short events)
{
	struct pollfd fd = {t->fd, events, 0};
	int n;

	do {
		uint64_t now = now_ns();

		if (now >= t->until_ns)
			return -ETIMEDOUT;
		n = poll(&fd, 1, (int)((t->until_ns - now) / 1000000) + 1);
	} while (!n || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

static int connect_to(struct talk *t, const struct addrinfo *to)
{
	socklen_t size = sizeof(int);
	int err = 0;

	t->fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       to->ai_protocol);
	if (t->fd < 0)
		return -errno;
	if (connect(t->fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS)
		return -errno;
	err = wait_for(t, POLLOUT);
	if (!err && (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &size) || err))
		err = -err ?: -errno;
	return err;
}

static int open_talk(struct talk *t, const char *address, const char **words)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL, *to;
	char *host, *port;
	int err;

	split_address(address, &host, &port);
	err = getaddrinfo(host, port, &hints, &all);
	free(host);
	free(port);
	if (err) {
		*words = gai_strerror(err);
		return -EINVAL;
	}
	for (to = all; to; to = to->ai_next) {
		err = connect_to(t, to);
		if (!err)
			break;
		if (t->fd >= 0)
			close(t->fd);
		t->fd = -1;
	}
	freeaddrinfo(all);
	return err;
}

static int say(struct talk *t, const char *line)
{
	size_t n = strlen(line), at = 0;

	while (at < n) {
		ssize_t some = send(t->fd, line + at, n - at, MSG_NOSIGNAL);
		int err = some < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;

		if (!err && some < 0)
			err = wait_for(t, POLLOUT);
		if (err)
			return err;
		at += some > 0 ? (size_t)some : 0;
	}
	return 0;
}

/* What has come: bytes; 0 at the end; or -errno. */
static ssize_t receive(struct talk *t)
{
	char buffer[4096];
	ssize_t n;
	int err = wait_for(t, POLLIN);

	if (err)
		return err;
	n = recv(t->fd, buffer, sizeof(buffer), 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? receive(t) : -errno;
	if (t->n + (size_t)n > ANSWER_MOST)
		return -EFBIG;
	t->text = xrealloc(t->text, t->n + (size_t)n + 1, 1);
	memcpy(t->text + t->n, buffer, (size_t)n);
	t->n += (size_t)n;
	t->text[t->n] = '\0';
	return n;
}

/* One line of an answer, which has to begin like that. */
static int expect_line(struct talk *t, const char *begin)
{
	ssize_t n;

	t->n = 0;
	do {
		n = receive(t);
		if (n < 0)
			return (int)n;
		if (!n)
			return -EPIPE;
	} while (!strchr(t->text, '\n'));
	return strncasecmp(t->text, begin, strlen(begin)) ? -EPROTO : 0;
}

static int hold_talk(struct talk *t)
{
	ssize_t n;
	char line[32];
	int err = say(t, "CLIENT PROTOCOL 2\n");

	/* Other versions of the protocol are tried, as NCCL's own client does. */
	if (!err)
		err = expect_line(t, "SERVER PROTOCOL");
	snprintf(line, sizeof(line), "TIMEOUT %d\n", RAS_TIMEOUT_S);
	if (!err)
		err = say(t, line);
	if (!err)
		err = expect_line(t, "OK");
	if (!err)
		err = say(t, "VERBOSE STATUS\n");
	if (err)
		return err;
	t->n = 0;
	while ((n = receive(t)) > 0)
		;
	return (int)n;
}

void ras_ask(struct ras *ras, const char *address, uint64_t within_ns)
{
	struct talk talk = {.fd = -1, .until_ns = now_ns() + within_ns};
	const char *words = NULL;
	int err;

	*ras = (struct ras){0};
	err = open_talk(&talk, address, &words);
	if (!err)
		err = hold_talk(&talk);
	if (talk.fd >= 0)
		close(talk.fd);
	if (err || !talk.n) {
		ras->error = xstrdup(words            ? words
				     : err == -EPROTO ? "what answers there is not NCCL's RAS"
				     : err == -EPIPE || !err ? "it closed the connection"
							     : strerror(-err));
		free(talk.text);
		return;
	}
	ras->text = talk.text;
}

void ras_release(struct ras *ras)
{
	free(ras->text);
	free(ras->error);
	*ras = (struct ras){0};
}

/* ---- its answer ------------------------------------------------------------------------------ */

struct ras_row {
	const char *said, *here;
};

static const struct column ras_columns[] = {
	COLUMN(struct ras_row, said, "RAS says", UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct ras_row, here),
	COLUMN_JSON(struct ras_row, here, UNIT_TEXT),
};

static const struct table_kind ras_kind = {
	TABLE("ras",
	      "NCCL RAS: which ranks disagree, by NCCL's own word; and what cudaspy sees of them",
	      struct ras_row, ras_columns),
	.text_rows = 60,
};

struct rows {
	struct report *report;
	struct ras_row *all;
	size_t n;
};

static void add(struct rows *r, const char *said, const char *here)
{
	r->all = grow(r->all, r->n, sizeof(*r->all));
	r->all[r->n++] = (struct ras_row){said, here};
}

/* The number behind a word. 0: there is none. */
static unsigned long number_behind(const char *line, const char *word)
{
	const char *at = strstr(line, word);

	return at && isdigit((unsigned char)at[strlen(word)]) ? strtoul(at + strlen(word), NULL, 10)
							      : 0;
}

static bool is_called(const struct live_process *p, unsigned long pid)
{
	return p->trace->pid == pid || (p->recorded && (unsigned long)p->recorded->pid == pid);
}

/* What the thread does, and where it was in Python. */
static const char *thread_text(const struct live_words *w, const struct live_thread *t)
{
	const char *line = live_python_line(w, t);

	return line ? arena_printf(w->texts,
				   "cudaspy: %s; the last recorded Python line of thread %u: %s",
				   live_chain_text(w, t), t->tid, line)
		    : arena_printf(w->texts, "cudaspy: %s", live_chain_text(w, t));
}

/* Of the process that the line names: the thread that says why it does not go on. */
static const char *seen_here(const struct live_words *w, const char *line)
{
	unsigned long pid = number_behind(line, "process ");
	const struct live *live = w->live;

	for (size_t i = 0; pid && i < live->n_processes; i++)
		if (is_called(&live->processes[i], pid)) {
			const struct live_thread *t = live_decisive_thread(&live->processes[i], 0);

			return t ? thread_text(w, t) : NULL;
		}
	return NULL;
}

static bool is_heading(const char *line)
{
	return !strcmp(line, "Errors") || !strcmp(line, "Warnings");
}

static bool is_empty(const char *line)
{
	return !line[strspn(line, " \t\r=")];
}

/* The lines of its parts "Errors" and "Warnings". */
static void add_answer(struct rows *r, const struct live_words *w, const struct ras *ras)
{
	char *copy = xstrdup(ras->text), *rest = copy, *line;
	bool inside = false;

	while ((line = strsep(&rest, "\n"))) {
		line[strcspn(line, "\r")] = '\0';
		if (is_heading(line))
			inside = true;
		else if (inside && !is_empty(line))
			add(r, report_text(r->report, "%s", line), seen_here(w, line));
	}
	if (!r->n)
		add(r, "no rank disagrees: RAS has neither errors nor warnings", NULL);
	free(copy);
}

void live_add_ras(struct report *report, const struct live_words *w, const struct ras *ras,
		  const char *address)
{
	struct rows rows = {.report = report};

	if (ras->text)
		add_answer(&rows, w, ras);
	else
		add(&rows,
		    report_text(report,
				"%s: no answer: %s (NCCL 2.24 and later listen there, unless "
				"NCCL_RAS_ENABLE=0 or NCCL_RAS_ADDR says otherwise)",
				address, ras->error),
		    NULL);
	report_add(report, &ras_kind, rows.all, rows.n);
}
