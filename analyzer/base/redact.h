/*
 * analyzer/base/redact.h: what is sent on without saying whose machine it is from (--redact).
 *
 * Off until redact_begin; then two things happen. What is known to be a command line or a variable is dropped where it
 * enters (trace/metadata.h). Paths and users' names may stand within any text: where paths enter they are told here, and
 * each text goes through `redacted` where it leaves: the report's before it is rendered, a timeline's and an export's
 * names, warnings. In between all texts are whole, so that files are found, and filters and suppressions mean the same.
 */
#ifndef CUDASPY_REDACT_H
#define CUDASPY_REDACT_H

#include <stdbool.h>

/* What stands for a user's name. */
#define REDACTED_USER "[user]"

/* From here on. The name of who runs this is known, too. */
void redact_begin(void);
bool redact_is_on(void);

/* More was told than is kept, so that what is kept depends on the order. */
bool redact_is_full(void);

/* What was told is forgotten; off. */
void redact_end(void);

/*
 * That is a path, of a file or of a directory: whose home it lies in, and how it may be found within a text though its
 * name has blanks, or does not begin with a slash. NULL: nothing. Nothing happens while it is off.
 */
void redact_path(const char *path);
void redact_directory(const char *path);

/*
 * A copy in which of each path only the last part is left (`/home/jane/x/train.py:22` is `train.py:22`), and of the
 * names of users that are known so far REDACTED_USER; the caller frees. URLs stay. While it is off, the text as it is;
 * NULL for NULL.
 */
char *redacted(const char *text);

#endif
