/*
 * shim/record/notes.c: notes of the trace, each text once. Runs on the application's threads, on
 * the recorder's own stack.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "process/heap.h" /* before uthash.h */
#include <uthash.h>
#include "process/own_stack.h"
#include "record/board.h"
#include "record/notes.h"
#include "state/session.h"

#define SPY_NOTES_MOST 4096 /* texts that are remembered, and so said once */

struct spy_note_text {
	UT_hash_handle hh;
	uint16_t note;
	char text[];
};

/* Notes made before there is a session, or again and again. */
static struct early_note {
	uint16_t note;
	char text[256];
} early_notes[32];
static unsigned int early_count;

static void write_note(enum spy_note note, const char *text, size_t length)
{
	struct spy_rec_note *record = spy_session_append(SPY_EV_NOTE, sizeof(*record) + length + 1);

	if (!record)
		return;
	record->note = (uint16_t)note;
	memcpy(record->text, text, length + 1);
	spy_session_commit(sizeof(*record) + length + 1);
}

/* True the first time a text is said in this session. Of more texts than are remembered none is
 * said. */
static bool is_news(enum spy_note note, const char *text, size_t length)
{
	struct spy_note_text *said = NULL, *fresh = NULL;

	if (!spy_lock(&spy_session->lock))
		return true;
	HASH_FIND(hh, spy_session->notes, text, length, said);
	if (!said && spy_session->n_notes < SPY_NOTES_MOST)
		fresh = spy_heap_take(sizeof(*fresh) + length + 1);
	if (fresh) {
		fresh->note = (uint16_t)note;
		memcpy(fresh->text, text, length + 1);
		HASH_ADD(hh, spy_session->notes, text[0], length, fresh);
		spy_session->n_notes++;
		spy_board_show(spy_session->board->notes, spy_session->n_notes);
	} else if (!said) {
		spy_board_show(spy_session->board->notes_dropped,
			       spy_session->board->notes_dropped + 1);
	}
	spy_unlock(&spy_session->lock);
	return fresh;
}

static void keep_early_note(enum spy_note note, const char *text, size_t length)
{
	struct early_note *early;

	if (!spy_lock(&spy_session->early_lock))
		return;
	if (early_count < sizeof(early_notes) / sizeof(early_notes[0])) {
		early = &early_notes[early_count++];
		early->note = (uint16_t)note;
		if (length >= sizeof(early->text))
			length = sizeof(early->text) - 1;
		memcpy(early->text, text, length);
	}
	spy_unlock(&spy_session->early_lock);
}

struct saying {
	enum spy_note note;
	const char *format;
	va_list *args;
};

static void note_on_own_stack(void *data)
{
	const struct saying *saying = data;
	char text[SPY_TEXT_MAX];
	int length = vsnprintf(text, sizeof(text), saying->format, *saying->args);

	if (length < 0)
		return;
	if ((size_t)length >= sizeof(text))
		length = sizeof(text) - 1;
	if (!spy_session_active())
		keep_early_note(saying->note, text, (size_t)length);
	else if (is_news(saying->note, text, (size_t)length))
		write_note(saying->note, text, (size_t)length);
}

void spy_note(enum spy_note note, const char *format, ...)
{
	va_list args;
	struct saying saying = {.note = note, .format = format, .args = &args};

	va_start(args, format);
	spy_own_stack_run(note_on_own_stack, &saying);
	va_end(args);
}

void spy_notes_flush_early(void)
{
	if (!spy_lock(&spy_session->early_lock))
		return;
	for (unsigned int i = 0; i < early_count; i++)
		if (is_news(early_notes[i].note, early_notes[i].text, strlen(early_notes[i].text)))
			write_note(early_notes[i].note, early_notes[i].text,
				   strlen(early_notes[i].text));
	spy_unlock(&spy_session->early_lock);
}
