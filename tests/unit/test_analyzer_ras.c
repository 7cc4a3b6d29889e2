/*
 * tests/unit/test_analyzer_ras.c: NCCL's RAS is asked, by its protocol: an answer in pieces, one that is none, a server that
 * goes away, says nothing or too much; addresses; and what of the answer becomes rows.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "live/ras.h"

#define SECOND 1000000000ull

/* ---- a server ---- */

/* To each line an answer, in the order of the protocol; NULL: it closes the connection. */
struct script {
	const char *protocol, *timeout, *status;
	size_t piece; /* bytes at a time; 0: all at once */
	size_t times; /* the last answer, so often */
	bool silent; /* before it closes, it waits for the client to go */
};

#define ANSWERS(a, b, c) .protocol = a, .timeout = b, .status = c

static const char *const wanted[] = {"CLIENT PROTOCOL 2\n", "TIMEOUT 5\n", "VERBOSE STATUS\n"};

static int listening, n_right;
static struct script script;

static void send_all(int fd, const char *text)
{
	size_t length = strlen(text), piece = script.piece ?: length;

	for (size_t at = 0; at < length; at += piece)
		if (send(fd, text + at, length - at < piece ? length - at : piece, MSG_NOSIGNAL) <
		    0)
			return;
}

static void *serve(void *data)
{
	const char *answers[] = {script.protocol, script.timeout, script.status};
	int fd = accept(listening, NULL, NULL);
	char line[64];
	bool cut = false;

	(void)data;
	for (int i = 0; i < 3 && !cut; i++) {
		size_t n = 0;

		while (n < sizeof(line) - 1 && read(fd, line + n, 1) == 1 && line[n++] != '\n')
			;
		line[n] = '\0';
		n_right += strcmp(line, wanted[i]) == 0;
		if (!answers[i])
			break;
		cut = !strchr(answers[i], '\n'); /* a line without an end is the last one */
		for (size_t k = 0; k < (i == 2 ? script.times ?: 1 : 1); k++)
			send_all(fd, answers[i]);
	}
	if (script.silent)
		while (read(fd, line, sizeof(line)) > 0)
			;
	close(fd);
	return NULL;
}

static char address[64];

static void begin_to_listen(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(in);

	listening = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&in, &size), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(in.sin_port));
}

/* The answer; or why there is none. */
static struct ras ask(struct script plays, uint64_t within_ns)
{
	pthread_t server;
	struct ras ras;

	script = plays;
	n_right = 0;
	begin_to_listen();
	pthread_create(&server, NULL, serve, NULL);
	ras_ask(&ras, address, within_ns);
	pthread_join(server, NULL);
	close(listening);
	assert_int_equal(!ras.text, ras.error != NULL);
	return ras;
}

/* ---- the conversation ---- */

static void test_answer(void **state)
{
	static const size_t pieces[] = {0, 1, 7};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct ras ras = ask(
			(struct script){ANSWERS("SERVER PROTOCOL 2\n", "OK\n", "first\nsecond\n"),
					.piece = pieces[i]},
			20 * SECOND);

		assert_null(ras.error);
		assert_string_equal(ras.text, "first\nsecond\n");
		assert_int_equal(n_right, 3);
		ras_release(&ras);
		assert_null(ras.text);
	}
	/* As large as it may be, and one byte more. */
	for (int more = 0; more < 2; more++) {
		char block[4097];
		struct ras ras;

		memset(block, 'x', 4096);
		block[4096] = '\0';
		ras = ask((struct script){ANSWERS("server protocol 9\n", "ok\n", block),
					  .times = 256 + (size_t)more},
			  20 * SECOND);
		if (more) {
			assert_string_equal(ras.error, strerror(EFBIG));
		} else {
			assert_null(ras.error);
			assert_int_equal(strlen(ras.text), 1 << 20);
		}
		ras_release(&ras);
	}
}

static void test_no_answer(void **state)
{
	static const struct {
		struct script script;
		const char *error;
		int right; /* lines that the server was sent */
	} cases[] = {
		{{ANSWERS(NULL, NULL, NULL)}, "it closed the connection", 1},
		{{ANSWERS("HTTP/1.1 400\n", NULL, NULL)},
		 "what answers there is not NCCL's RAS",
		 1},
		{{ANSWERS("SERVER PROTOCO\n", NULL, NULL)},
		 "what answers there is not NCCL's RAS",
		 1},
		{{ANSWERS("SERVER PROTOCOL 2\n", NULL, NULL)}, "it closed the connection", 2},
		{{ANSWERS("SERVER PROTOCOL 2\n", "ERROR\n", NULL)},
		 "what answers there is not NCCL's RAS",
		 2},
		{{ANSWERS("SERVER PROTOCOL 2\n", "OK\n", NULL)}, "it closed the connection", 3},
		{{ANSWERS("SERVER PROTOCOL 2\n", "OK\n", "")}, "it closed the connection", 3},
		{{ANSWERS("SERVER PROTOCOL 2", NULL, NULL)},
		 "it closed the connection",
		 1}, /* half a line */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ras ras = ask(cases[i].script, 20 * SECOND);

		assert_string_equal(ras.error, cases[i].error);
		assert_int_equal(n_right, cases[i].right);
		ras_release(&ras);
	}
}

/* A server that says nothing, at any point: for as long as it is asked, and no longer. */
static void test_silent(void **state)
{
	static const struct script cases[] = {
		{.silent = true},
		{ANSWERS("SERVER PROTOCOL 2\n", NULL, NULL), .silent = true},
		{ANSWERS("SERVER PROTOCOL 2\n", "OK\n", "half"), .silent = true}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct ras ras = ask(cases[i], SECOND / 20);

		assert_string_equal(ras.error, strerror(ETIMEDOUT));
		ras_release(&ras);
	}
}

/* ---- addresses ---- */

static void test_addresses(void **state)
{
	static const char *const forms[] = {"127.0.0.1:%s", "[127.0.0.1]:%s", "localhost:%s"};
	struct ras ras;
	char text[64];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		pthread_t server;

		script = (struct script){ANSWERS("SERVER PROTOCOL 2\n", "OK\n", "fine\n")};
		begin_to_listen();
		snprintf(text, sizeof(text), forms[i], strchr(address, ':') + 1);
		pthread_create(&server, NULL, serve, NULL);
		ras_ask(&ras, text, 20 * SECOND);
		pthread_join(server, NULL);
		close(listening);
		assert_null(ras.error);
		assert_string_equal(ras.text, "fine\n");
		ras_release(&ras);
	}
	/* A port that no process listens at any more. */
	ras_ask(&ras, text, 20 * SECOND);
	assert_null(ras.text);
	assert_string_equal(ras.error, strerror(ECONNREFUSED));
	ras_release(&ras);
	ras_ask(&ras, "127.0.0.1:nonsense", 20 * SECOND);
	assert_non_null(ras.error);
	assert_string_not_equal(ras.error, strerror(ECONNREFUSED));
	assert_string_not_equal(ras.error, strerror(EINVAL));
	ras_release(&ras);
}

/* ---- rows ---- */

static struct live live;

static void expect_rows(const struct ras *ras, size_t n, const char *const *said)
{
	struct report report;
	struct live_words words;
	const struct table *table;

	report_init(&report, NULL);
	live_words_init(&words, &live, &report.arena);
	live_add_ras(&report, &words, ras, "host:1");
	table = report_find(&report, "ras");
	assert_int_equal(table->n_rows, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(table_text_at(table, i, "said"), said[i]);
	live_words_release(&words);
	report_release(&report);
}

static void test_rows(void **state)
{
	static char text[] =
		"NCCL version 2.28\nErrors are below\n\nErrors\r\n======\r\n\n"
		"#0-0 INCOMPLETE\n  rank 3 is missing (process 12)\r\n \nWarnings\n========\n#1-0 MISMATCH\n";
	static const char *const said[] = {"#0-0 INCOMPLETE", "  rank 3 is missing (process 12)",
					   "#1-0 MISMATCH"};
	static char fine[] = "NCCL version\nErrors\n======\n\nWarnings\n========\n\n";
	static const char *const none[] = {
		"no rank disagrees: RAS has neither errors nor warnings"};
	static const char *const failed[] = {
		"host:1: no answer: refused (NCCL 2.24 and later listen there, unless NCCL_RAS_ENABLE=0 or "
		"NCCL_RAS_ADDR says otherwise)"};
	static char why[] = "refused";

	(void)state;
	expect_rows(&(struct ras){.text = text}, 3, said);
	expect_rows(&(struct ras){.text = fine}, 1, none);
	expect_rows(&(struct ras){.error = why}, 1, failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer), cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_silent), cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_rows),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
