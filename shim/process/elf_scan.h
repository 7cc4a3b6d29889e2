/*
 * shim/process/elf_scan.h: walks over the loaded objects.
 *
 * dlsym would take the loader's lock, which a library's constructor may hold while it waits for the
 * very thread that makes the CUDA call. It would also change what dlerror returns. These functions
 * do neither, and none of them waits for the loader: a program may call CUDA inside a callback of
 * dl_iterate_phdr, and a forked child may have inherited a lock that stays locked (elf_scan.c).
 */
#ifndef CUDASPY_SHIM_ELF_SCAN_H
#define CUDASPY_SHIM_ELF_SCAN_H

#include <stdbool.h>
#include "lib/elf_object.h"

/* False: the loader's lock is not free, and the answer is unknown. */
bool spy_count_objects(struct spy_object_counters *counters);

/* Has the calling thread the loader's lock: is it in a callback of dl_iterate_phdr? It must not wait for who opens a library,
 * and who makes a thread does. */
bool spy_loader_is_held_here(void);

/* Finds the loader's lock; once, when the library is loaded. */
void spy_elf_scan_init(void);

/* In a forked child, before anything else. */
void spy_elf_scan_forked(void);

/*
 * Calls visit for each loaded object in the loader's order until it returns non-zero. visit must
 * not scan itself, nor keep what the object points to. The second one calls it for none if the
 * loader is at work; the first one then reads the loader's list as a debugger does.
 */
int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data);
int spy_try_each_object(int (*visit)(const struct spy_object *object, void *data), void *data);

/* The same for those that came with the program, up to the first that it opened, or up to some hundred: true, for all of them.
 * They stay where they are, and what they point to as well, so that no scan is needed. */
bool spy_each_first_object(int (*visit)(const struct spy_object *object, void *data), void *data);

#endif
