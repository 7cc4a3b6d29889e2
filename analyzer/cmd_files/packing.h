/*
 * analyzer/cmd_files/packing.h: traces of a set become containers. Called by `cudaspy pack` and `cudaspy run --pack`.
 */
#ifndef CUDASPY_PACKING_H
#define CUDASPY_PACKING_H

#include "trace/trace.h"

struct packing {
	const char *verb; /* for messages */
	bool unfinished; /* also those of which it is unknown whether their processes have ended */
	/* Which were packed, and which were not, after a message about each. */
	size_t packed, left;
};

/* Each directory of the set becomes a container of the same name. Containers stay what they are. */
void packing_in_place(struct packing *p, const struct trace_set *set);

/* All traces of the set into one container, or into one each below a folder. remove: directories that were packed. */
void packing_into_file(struct packing *p, const struct trace_set *set, const char *path,
		       bool remove);
void packing_into_folder(struct packing *p, const struct trace_set *set, const char *folder,
			 bool remove);

#endif
