/*
 * analyzer/pack/pack.h: finished trace directories become containers, and directories again. Called by `cudaspy pack`, `cudaspy
 * unpack` and `cudaspy run --pack`. Whether a trace is finished its callers know.
 */
#ifndef CUDASPY_PACK_H
#define CUDASPY_PACK_H

#include "container.h"
#include "writer.h"

/* All of them: 0, or -errno after a message, and then nothing has changed. */

/*
 * Adds a trace directory as a folder of that name. Of streams only what is used; their last packet then ends where its content
 * does. A folder that holds something else than files is refused.
 */
int pack_add_directory(struct writer *w, const char *dir, const char *folder);

/* The same for a trace that lies in a container, whose first member that is. */
int pack_add_packed(struct writer *w, const struct container *c, size_t first, const char *folder);

/* The container takes the directory's name and place, and the directory is removed when it is complete and on the disk. */
int pack_in_place(const char *dir);

/* Finishes and names a container for which traces were added; who may read the directory `like` may read it. */
int pack_finish(struct writer *w, const char *like);

/* Removes a trace directory, all of whose files were packed. */
int pack_remove_directory(const char *dir);

/*
 * Makes directories of what is in the container, below `parent`; checksums have to be right. in_place: one of them may take the
 * name of the container itself. A container that is torn or has damaged members is never removed.
 */
int unpack_container(const struct container *c, const char *parent, bool in_place);

#endif
