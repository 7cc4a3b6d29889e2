/*
 * analyzer/pack/swap.h: something new in the place of something old, so that one of the two is there at each moment, as a whole.
 * Called by `cudaspy pack` and `cudaspy unpack`.
 */
#ifndef CUDASPY_SWAP_H
#define CUDASPY_SWAP_H

/*
 * Gives `temporary`, a hidden file or folder, the name `path`, and what had that name another hidden one in the same folder: *old,
 * which the caller removes and frees. 0, or -errno after a message; then all is as before, or under a name that the message has.
 */
int swap_in(const char *temporary, const char *path, char **old);

#endif
