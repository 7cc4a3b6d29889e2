/*
 * shim/lib/disk.c: disk space that is really there. Called by the slow paths that make files.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "lib/disk.h"

static int write_zeros(int fd, off_t offset, size_t bytes)
{
	static const char zeros[4096];

	/* Not on file systems without fallocate: there the zeros themselves take the space. */
	while (bytes) {
		size_t part = bytes < sizeof(zeros) ? bytes : sizeof(zeros);
		ssize_t done = pwrite(fd, zeros, part, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		offset += done;
		bytes -= (size_t)done;
	}
	return 0;
}

int spy_disk_allows(off_t offset, size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    (rlim_t)offset + bytes > limit.rlim_cur)
		return -EFBIG;
	return 0;
}

int spy_disk_reserve(int fd, off_t offset, size_t bytes)
{
	int result = spy_disk_allows(offset, bytes);

	if (result)
		return result;
	do {
		result = fallocate(fd, 0, offset, (off_t)bytes);
	} while (result < 0 && errno == EINTR);
	if (result == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return write_zeros(fd, offset, bytes);
}

void spy_disk_release(int fd, off_t offset, size_t bytes)
{
	int result;

	do {
		result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
				   (off_t)bytes);
	} while (result < 0 && errno == EINTR);
}
