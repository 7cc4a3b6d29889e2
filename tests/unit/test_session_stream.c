/* links: shim/record/session_stream.c shim/record/message.c shim/state/subsystem.c */
/*
 * tests/unit/test_session_stream.c: records that belong to no thread: their times, their room, what is lost where there is
 * none and when room is asked for again; and what is said of that on standard error, once for each reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "process/folder.h"
#include "process/options.h"
#include "record/message.h"
#include "record/notes.h"
#include "state/subsystem.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
struct spy_thread *spy_threads;
static struct spy_thread threads[1];
static bool behind;
static int make_room_error, n_made_room, n_lost, n_part_begins;
static struct spy_rec_note repeated;
static size_t repeated_bytes;
static char note[300];
static bool folder_has_room;

bool spy_stream_is_behind(const struct spy_stream_file *file)
{
	assert_ptr_equal(file, &threads[0].file);
	return behind;
}

static void use(void)
{
	use_packet(&threads[0], 0);
	threads[0].file.packet = threads[0].packet;
	threads[0].file.room = 1000;
	threads[0].file.truncated = false;
}

int spy_stream_make_room(struct spy_thread *of)
{
	assert_ptr_equal(of, &threads[0]);
	n_made_room++;
	if (make_room_error)
		return make_room_error;
	behind = false;
	use();
	return 0;
}

void spy_session_count_lost(void)
{
	n_lost++;
}

void spy_repeated_add(const struct spy_rec_other *record, size_t bytes)
{
	memcpy(&repeated, record, sizeof(repeated));
	repeated_bytes = bytes;
}

bool spy_folder_has_room(size_t bytes)
{
	assert_int_equal(bytes, SPY_PACKET_BYTES);
	return folder_has_room;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_int_equal(what, SPY_NOTE_OTHER);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

static void part_begins(void)
{
	n_part_begins++;
}

static const struct spy_subsystem subsystems[] = {{.name = "one", .part_begins = part_begins}, {0}};

static int begin(void **state)
{
	(void)state;
	begin_session();
	memset(threads, 0, sizeof(threads));
	spy_threads = threads;
	spy_subsystems = subsystems;
	spy_options = (struct spy_options){0};
	behind = false;
	make_room_error = n_made_room = n_lost = n_part_begins = 0;
	folder_has_room = true;
	note[0] = '\0';
	use();
	return 0;
}

static const uint8_t *first_record(void)
{
	return packets[0] + sizeof(struct spy_packet);
}

static void expect_published(size_t bytes, uint64_t time)
{
	assert_ptr_equal(threads[0].head, first_record() + bytes);
	assert_int_equal(threads[0].file.packet->content_bits,
			 8 * (sizeof(struct spy_packet) + bytes));
	assert_int_equal(threads[0].file.packet->time_end, time);
	assert_int_equal(session.lock.owner, 0);
}

/* ---- records ---- */

static void test_append(void **state)
{
	struct spy_rec_note *record = spy_session_append(SPY_EV_NOTE, 40);
	uint64_t first = now;

	(void)state;
	assert_ptr_equal(record, first_record());
	assert_int_equal(record->head.event, SPY_EV_NOTE);
	assert_int_equal(record->head.time, first);
	assert_true(spy_lock_is_mine(&session.lock));
	record->note = 77;
	spy_session_commit(40);
	expect_published(40, first);
	/* A later part may have to say it again. */
	assert_int_equal(repeated.note, 77);
	assert_int_equal(repeated_bytes, 40);
	/* Not before what another thread has written meanwhile. */
	now -= 100;
	record = spy_session_append(SPY_EV_KERNEL, 24);
	assert_int_equal(record->head.time, first);
	spy_session_commit(24);
	expect_published(64, first);
	/* A whole one, with the lock held. */
	now += 500;
	repeated_bytes = 0;
	assert_true(spy_try_lock(&session.lock));
	record = spy_session_put(
		&(struct spy_rec_note){.head = {.event = SPY_EV_NOTE, .time = 1}, .note = 5},
		sizeof(*record));
	spy_unlock(&session.lock);
	assert_ptr_equal(record, first_record() + 64);
	assert_int_equal(record->head.time, now);
	assert_int_equal(record->note, 5);
	expect_published(64 + sizeof(*record), now);
	assert_int_equal(repeated_bytes, 0);
	session.state = SPY_SESSION_FAILED;
	assert_null(spy_session_append(SPY_EV_NOTE, 8));
	assert_int_equal(session.untold, 0);
}

/* To the end of what the file has. */
static void test_room(void **state)
{
	size_t rest = 1000 - sizeof(struct spy_packet);

	(void)state;
	assert_non_null(spy_session_append(SPY_EV_NOTE, rest));
	spy_session_commit(rest);
	assert_int_equal(n_made_room, 0);
	assert_ptr_equal(spy_session_append(SPY_EV_NOTE, 1), first_record());
	spy_session_commit(1);
	assert_int_equal(n_made_room, 1);
	/* Larger than any room. */
	assert_null(spy_session_append(SPY_EV_NOTE, rest + 1));
	assert_int_equal(session.lock.owner, 0);
	assert_int_equal(session.untold, 1);
	/* The tail was truncated: what is mapped is memory of this process alone. */
	threads[0].file.truncated = true;
	assert_non_null(spy_session_append(SPY_EV_NOTE, 8));
	spy_session_commit(8);
	assert_int_equal(n_made_room, 3);
}

/* A full disk is asked again in a tenth of a second; what is lost meanwhile is counted, but for what was only offered. */
static void test_full_disk(void **state)
{
	(void)state;
	make_room_error = -ENOSPC;
	threads[0].head = packets[0] + 1000;
	assert_null(spy_session_append(SPY_EV_NOTE, 8));
	assert_null(spy_session_append(SPY_EV_NOTE, 8));
	assert_null(spy_session_offer(SPY_EV_WINDOW, 8));
	now += 100 * MS - 1;
	assert_null(spy_session_append(SPY_EV_NOTE, 8));
	assert_int_equal(n_made_room, 1);
	assert_int_equal(threads[0].file.discarded, 3);
	assert_int_equal(threads[0].file.packet->discarded, 3);
	assert_int_equal(session.untold, 3);
	now++;
	assert_null(spy_session_put(&repeated, sizeof(repeated)));
	assert_int_equal(n_made_room, 2);
	assert_int_equal(session.untold, 4);
	/* In another folder there is room, perhaps, at once. */
	make_room_error = 0;
	behind = true;
	spy_session_turn();
	assert_int_equal(n_part_begins, 1);
	assert_false(behind);
	assert_non_null(spy_session_offer(SPY_EV_WINDOW, 8));
	spy_session_commit(8);
	assert_int_equal(n_lost, 0);
	assert_int_equal(threads[0].retry_at, 0);
}

/* Another part has begun: the first record in it tells what a part begins with, once. */
static void test_another_part(void **state)
{
	(void)state;
	behind = true;
	assert_non_null(spy_session_append(SPY_EV_NOTE, 8));
	spy_session_commit(8);
	assert_int_equal(n_part_begins, 1);
	assert_int_equal(n_made_room, 1);
	spy_session_append(SPY_EV_NOTE, 8);
	spy_session_commit(8);
	assert_int_equal(n_part_begins, 1);
	/* There is no room in it yet: what there is in the one before serves. */
	behind = true;
	make_room_error = -ENOSPC;
	assert_non_null(spy_session_append(SPY_EV_NOTE, 8));
	spy_session_commit(8);
	assert_int_equal(n_part_begins, 1);
}

/* The lock is not to be had: lost. */
static void test_no_lock(void **state)
{
	(void)state;
	session.lock.owner = 1;
	assert_null(spy_session_append(SPY_EV_NOTE, 8));
	assert_int_equal(n_lost, 1);
	assert_null(spy_session_offer(SPY_EV_NOTE, 8));
	assert_int_equal(n_lost, 1);
	assert_int_equal(session.lock.owner, 1);
	session.lock.owner = 0;
}

/* ---- standard error ---- */

static int saved, out; /* what descriptor 2 was; what comes to it */

static void redirect(void)
{
	int ends[2];

	fflush(stderr);
	saved = dup(STDERR_FILENO);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	out = ends[0];
	spy_message_init();
}

static void restore(void)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
	if (out >= 0)
		close(out);
}

static const char *said(void)
{
	static char text[4096];
	ssize_t bytes = read(out, text, sizeof(text) - 1);

	text[bytes > 0 ? bytes : 0] = '\0';
	return text;
}

static void test_messages(void **state)
{
	char longest[3000];
	const char *text;
	int other;

	(void)state;
	redirect();
	spy_message("%d calls", 7);
	assert_string_equal(said(), "cudaspy: 7 calls\n");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	spy_message("%s", longest);
	text = said();
	assert_int_equal(strlen(text), SPY_PATH_MAX + 256 - 1);
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_int_equal(text[strlen(text) - 2], 'x');
	longest[SPY_PATH_MAX + 256 - 11] = '\0'; /* as long as there is room for */
	spy_message("%s", longest);
	text = said();
	assert_int_equal(strlen(text), SPY_PATH_MAX + 256 - 1);
	spy_options.quiet = "1";
	spy_message("nothing");
	assert_string_equal(said(), "");
	spy_options.quiet = NULL;
	/* The program has opened a file of its own there. */
	other = open("/dev/null", O_WRONLY);
	dup2(other, STDERR_FILENO);
	close(other);
	spy_message("nothing");
	assert_string_equal(said(), "");
	restore();
}

/* The reader is gone: no signal, and one that was pending stays so. */
static void test_no_reader(void **state)
{
	sigset_t pending, pipe_signal;

	(void)state;
	signal(SIGPIPE, SIG_DFL); /* which would end us */
	redirect();
	close(out);
	out = -1;
	spy_message("nothing");
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe_signal, NULL);
	spy_message("nothing");
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
	raise(SIGPIPE);
	spy_message("nothing");
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGPIPE));
	sigprocmask(SIG_BLOCK, NULL, &pending); /* and the mask is as it was */
	assert_true(sigismember(&pending, SIGPIPE));
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &pipe_signal, NULL);
	sigprocmask(SIG_BLOCK, NULL, &pending);
	assert_false(sigismember(&pending, SIGXFSZ));
	restore();
}

static void test_reasons(void **state)
{
	(void)state;
	assert_string_equal(spy_message_reason(-EACCES), "Permission denied");
	assert_string_equal(spy_message_reason(-ENOSPC), "No space left on device");
	folder_has_room = false;
	assert_string_equal(spy_message_reason(-EACCES), "Permission denied");
	assert_non_null(strstr(spy_message_reason(-ENOSPC), "the file system is nearly full"));
}

/* Once for each reason, and not for what will pass by itself. */
static void test_warnings(void **state)
{
	(void)state;
	strcpy(session.directory, "/a/folder");
	redirect();
	spy_warn_not_stored(-EBUSY);
	assert_string_equal(said(), "");
	spy_warn_not_stored(-ENOSPC);
	assert_string_equal(
		said(),
		"cudaspy: /a/folder: nothing can be stored: No space left on device; what is lost "
		"is counted, and recording goes on when it can\n");
	assert_string_equal(note, "recording stopped for a while: No space left on device");
	spy_warn_not_stored(-ENOSPC);
	assert_string_equal(said(), "");
	spy_warn_not_stored(-EACCES);
	assert_non_null(strstr(said(), "Permission denied"));
	/* Files that were truncated: where that is so, and once. */
	spy_warn_damaged();
	assert_string_equal(said(), "");
	session.damaged = true;
	spy_warn_damaged();
	assert_string_equal(
		said(),
		"cudaspy: /a/folder: files of the trace were truncated or removed while it was written\n");
	assert_string_equal(note,
			    "files of the trace were truncated or removed while it was written");
	assert_false(session.damaged);
	session.damaged = true;
	spy_warn_damaged();
	assert_string_equal(said(), "");
	assert_false(session.damaged);
	restore();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_append, begin),
		cmocka_unit_test_setup(test_room, begin),
		cmocka_unit_test_setup(test_full_disk, begin),
		cmocka_unit_test_setup(test_another_part, begin),
		cmocka_unit_test_setup(test_no_lock, begin),
		cmocka_unit_test_setup(test_messages, begin),
		cmocka_unit_test_setup(test_no_reader, begin),
		cmocka_unit_test_setup(test_reasons, begin),
		cmocka_unit_test_setup(test_warnings, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
