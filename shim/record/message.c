/*
 * shim/record/message.c: lines on standard error, and what is said of a trace that cannot be
 * stored. Runs on the application's threads, in slow paths.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "process/folder.h"
#include "process/options.h"
#include "record/message.h"
#include "record/notes.h"
#include "state/session.h"

static struct stat first_stderr; /* what descriptor 2 was when the library was loaded */

/* write(2) without a SIGPIPE, for the reader of standard error may be gone, and without a
 * SIGXFSZ, for standard error may be a file that is as large as the process may make one. */
static void write_quietly(const char *text, size_t length)
{
	struct timespec at_once = {0};
	sigset_t raised, before, pending;
	int signal = 0;

	sigemptyset(&raised);
	sigaddset(&raised, SIGPIPE);
	sigaddset(&raised, SIGXFSZ);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &raised, &before);
	if (write(STDERR_FILENO, text, length) < 0)
		signal = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
	if (signal && !sigismember(&pending, signal)) {
		sigemptyset(&raised);
		sigaddset(&raised, signal);
		sigtimedwait(&raised, NULL, &at_once);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* One line on standard error, if that is still what it was: a program may have closed it and opened
 * its own file there. */
void spy_message(const char *format, ...)
{
	char text[SPY_PATH_MAX + 256];
	struct stat now;
	va_list args;
	size_t length;

	if (spy_options.quiet || fstat(STDERR_FILENO, &now) < 0 ||
	    now.st_dev != first_stderr.st_dev || now.st_ino != first_stderr.st_ino)
		return;
	length = (size_t)snprintf(text, sizeof(text), "cudaspy: ");
	va_start(args, format);
	length += (size_t)vsnprintf(text + length, sizeof(text) - length - 1, format, args);
	va_end(args);
	if (length > sizeof(text) - 2)
		length = sizeof(text) - 2;
	text[length++] = '\n';
	write_quietly(text, length);
}

const char *spy_message_reason(int error)
{
	if (error == -ENOSPC && !spy_folder_has_room(SPY_PACKET_BYTES))
		return "the file system is nearly full (CUDASPY_FLOOR says how much is to stay "
		       "free)";
	return strerrordesc_np(-error);
}

/* What is said once for each of its reasons. */
static bool is_first(int error)
{
	uint32_t bit = (uint32_t)1 << (-error & 31);

	return !(__atomic_fetch_or(&spy_session->said, bit, __ATOMIC_RELAXED) & bit);
}

void spy_warn_not_stored(int error)
{
	if (error == -EBUSY || !is_first(error))
		return;
	spy_message("%s: nothing can be stored: %s; what is lost is counted, and recording goes "
		    "on when it can",
		    spy_session->directory, spy_message_reason(error));
	spy_note(SPY_NOTE_OTHER, "recording stopped for a while: %s", spy_message_reason(error));
}

void spy_warn_damaged(void)
{
	if (!atomic_exchange(&spy_session->damaged, false) || !is_first(0))
		return;
	spy_message("%s: files of the trace were truncated or removed while it was written",
		    spy_session->directory);
	spy_note(SPY_NOTE_OTHER,
		 "files of the trace were truncated or removed while it was written");
}

void spy_message_init(void)
{
	fstat(STDERR_FILENO, &first_stderr);
}
