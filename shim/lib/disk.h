/*
 * shim/lib/disk.h: disk space that is really there. Writing to a mapped page without it is a SIGBUS
 * in the middle of the application.
 */
#ifndef CUDASPY_SHIM_DISK_H
#define CUDASPY_SHIM_DISK_H

#include <sys/types.h>

/* Bytes of a path into a trace directory. Less than PATH_MAX: a thread's whole stack may be 16
 * KiB. */
#define SPY_PATH_MAX 1024

/* May a file of this process reach offset + bytes? 0, or -EFBIG: past RLIMIT_FSIZE the kernel would
 * send SIGXFSZ. */
int spy_disk_allows(off_t offset, size_t bytes);

/* Makes [offset, offset + bytes) of a file exist, zeroed, with its space. 0 or -errno. */
int spy_disk_reserve(int fd, off_t offset, size_t bytes);

/* Gives the space of [offset, offset + bytes) back, where the file system can: it reads as zeros, and the file stays as long as
 * it is. */
void spy_disk_release(int fd, off_t offset, size_t bytes);

#endif
