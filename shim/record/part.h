/*
 * shim/record/part.h: the parts of a recording, as those who write in their folders see them: which part is being written,
 * which ones are finished, and which of these are deleted. When a part ends is said by parts/parts.h. Used on the
 * application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_PART_H
#define CUDASPY_SHIM_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "process/folder.h"
#include "record/stream_file.h"

#define SPY_PARTS_MOST 16384 /* finished ones that are known, and so can be deleted */

struct spy_part {
	uint32_t number;
	uint32_t suffix; /* of the folder's name, where another one had it; 0: none */
	struct spy_file_id folder;
	_Atomic uint64_t bytes; /* on the disk */
	struct spy_tally so_far; /* of all slots, in this part and all before */
	uint64_t end; /* cycles */
};

struct spy_repeated;

/* A part of the session; session lock: of what has no other word. */
struct spy_parts {
	_Atomic int inside
		[2]; /* threads that work in the folder of a part, by the last bit of its number */
	_Atomic uint64_t begun_at[2]; /* cycles; likewise */
	_Atomic bool busy; /* a thread ends the part, or the process ends */
	_Atomic uint64_t due; /* when the part ends by its age; UINT64_MAX: not */
	uint64_t calls; /* records of them in the parts before */
	_Atomic uint32_t windows; /* that had been opened when the part began */
	uint64_t lost; /* board->lost of the parts before */
	_Atomic uint64_t finished_bytes;
	_Atomic uint32_t oldest, next; /* numbers: [oldest, next) are known (spy_finished_parts) */
	/* retire.c */
	_Atomic bool removing; /* a thread is at it */
	_Atomic uint32_t going; /* the part whose files are being deleted; 0: none */
	uint64_t going_bytes; /* of it */
	_Atomic uint32_t removed; /* parts up to this number */
	_Atomic uint32_t removed_recorded; /* the same, as the trace has it */
	/* repeated.c */
	struct spy_repeated *repeated;
};

/* A thread begins to work in the folder of the part that is being written, which it returns; and has done so. */
uint32_t spy_parts_enter(void);
void spy_parts_leave(uint32_t part);

/* When the part began that the caller works in (cycles). */
uint64_t spy_parts_begun_at(uint32_t part);

/* So many bytes of a finished part are not needed any more. */
void spy_parts_shrink(uint32_t part, uint64_t bytes);

/* retire.c: has that part been deleted, or is that going on? */
bool spy_parts_are_deleted(uint32_t part);

/* There is more on the disk: deletes old parts as far as there is a bound; a few files at a time. */
void spy_parts_bound(void);

/* The same for what is too old. */
void spy_parts_expire(uint64_t now);

/* Would that delete anything? */
bool spy_parts_are_kept_too_long(uint64_t now);

/* repeated.c: what the session's stream has said, and a later part has to say again. Session lock held. */
struct spy_rec_other;
void spy_repeated_add(const struct spy_rec_other *record, size_t bytes);
void spy_repeated_each(void *(*put)(const void *record, size_t bytes));

#endif
