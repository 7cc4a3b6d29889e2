/*
 * shim/record/message.h: lines on standard error (message.c). Called on the application's threads,
 * in slow paths.
 */
#ifndef CUDASPY_SHIM_MESSAGE_H
#define CUDASPY_SHIM_MESSAGE_H

/* Remembers what standard error is; once, when the library is loaded. */
void spy_message_init(void);

/* One line, unless the program has replaced standard error, or the user wants none. */
void spy_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Why nothing can be stored, in words. error: an error number, negative. */
const char *spy_message_reason(int error);

/* Records cannot be stored, for now: said once for each reason. error: an error number,
 * negative. */
void spy_warn_not_stored(int error);

/* Says once that files of the trace were truncated or removed, if they were. */
void spy_warn_damaged(void);

#endif
