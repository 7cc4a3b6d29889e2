/*
 * shim/process/folder.h: the folder of a trace, and all files in it. Used on the application's
 * threads, in slow paths.
 *
 * Only its owner may look into it, and nothing in it is ever opened through a name that another
 * user may have put there: files are made exclusively and opened again by name and identity,
 * relative to a descriptor of the folder. That descriptor stays open, so that a program that has
 * changed its root or its namespace is recorded as before. The program may close it and use its
 * number: before each use it is compared with the folder, which is opened again by its path if it
 * is another file.
 *
 * Where the recording has parts (parts/parts.h) there are two folders that are known: that of the part being written, and
 * the one before. `part` says which; of an older one nothing is found (-ESTALE).
 */
#ifndef CUDASPY_SHIM_FOLDER_H
#define CUDASPY_SHIM_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Which file it is, whatever its name. */
struct spy_file_id {
	dev_t device;
	ino_t inode; /* 0: none */
};

/*
 * Makes the folder of this process' trace: PROGRAM-PID.cudaspy (PROGRAM.rankN-PID.cudaspy, where a launcher says the
 * rank) in a parent directory, which is made if it is not there, with something behind the pid where that name is taken. path, absolute, gets
 * its name; if it cannot be made, what was tried. 0 or -errno.
 */
int spy_folder_create(char *path, size_t size, const char *parent, int pid);

/*
 * From here on the calling thread, one of the recorder's own, has a table of descriptors to itself, in which only the folders are.
 * What it opens then takes no number that the program would get, and is in no child that the program forks. Where the system
 * does not have that (close_range of Linux 5.9), it shares the program's as before.
 */
void spy_folder_own_files(void);

/* In a forked child: the parent's folder is not used any more. */
void spy_folder_forget(void);

/* A new file, for reading and writing. A descriptor, never 0, 1 or 2: a program that closed
 * those goes on using them. Or -errno; EEXIST if the name is taken, by whatever. */
int spy_folder_make(uint32_t part, const char *name, struct spy_file_id *id);

/* A file that was made before. -ENOENT: nothing has its name. -ESTALE: something else has. */
int spy_folder_open(uint32_t part, const char *name, const struct spy_file_id *id);

/* Removes a name; what else has it stays. */
void spy_folder_remove(uint32_t part, const char *name, const struct spy_file_id *id);

/* Gives a file another name in the folder, in the place of what has it. 0 or -errno. */
int spy_folder_rename(uint32_t part, const char *from, const char *to);

/* Replaces the file by n pieces of text, so that a reader sees the old or the new one. 0 or -errno. */
int spy_folder_replace(uint32_t part, const char *name, const struct iovec *pieces, size_t n);

/* Before the process becomes another user with fewer rights: gives a file, or the folder (name
 * ""), to that user. */
int spy_folder_give(uint32_t part, const char *name, const struct spy_file_id *id, uid_t owner);

/* Would the file system keep what is to stay free, with so many bytes less? True if nothing is
 * to. */
bool spy_folder_has_room(size_t bytes);

/* Is the file still there under its name, and no shorter than it was? 0, -ENOENT: no file is, or
 * -ESTALE. */
int spy_folder_check(uint32_t part, const char *name, const struct spy_file_id *id, uint64_t bytes);

/* Deletes a file. Returns how long it was. */
uint64_t spy_folder_delete(uint32_t part, const char *name);

/* ---- parts ---- */

#define SPY_PART_NAME_BYTES 256

/* Makes the folder of the next part, under the name that the one before is to have: *number is what that has behind it,
 * for another one has it; 0: nothing. 0 or -errno. */
int spy_folder_begin_part(uint32_t part, uint32_t *number);

/* It becomes the one with the recording's name, and that of the board's file. On an error nothing has changed. */
int spy_folder_exchange(uint32_t part, uint32_t number);

/* It is not needed. Only metadata is in it. */
void spy_folder_drop_part(uint32_t part, uint32_t number);

/* Name of a finished part's folder, of SPY_PART_NAME_BYTES; hidden: while it is being deleted. */
void spy_folder_part_name(char *name, uint32_t part, uint32_t number, bool hidden);

/* Descriptor of the directory around the folder of a part, to be closed. Or -errno. */
int spy_folder_around(uint32_t part);

struct spy_file_id spy_folder_id(uint32_t part);

/* Why CUDASPY_GROUP could not be done: an error number, 0 it was. */
int spy_folder_group_error(void);

#endif
