/*
 * shim/disk.c: disk space that is really there. Called by the slow paths that make files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include "disk.h"

static int write_zeros(int fd, off_t offset, size_t bytes)
{
	static const char zeros[4096];

	/* Not on file systems that know no fallocate: then the zeros themselves take the space. */
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

int spy_disk_open(const char *path, int flags)
{
	int filler[3], fillers = 0, fd, error = 0;

	/* Something harmless takes the low numbers, so that the file itself never has one. */
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
		filler[fillers++] = fd;
	if (fd >= 0)
		close(fd);
	fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		error = -errno;
	while (fillers)
		close(filler[--fillers]);
	return error ? error : fd;
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

int spy_disk_replace(const char *path, const char *text, size_t bytes)
{
	char temporary[SPY_PATH_MAX + 8];
	size_t done = 0;
	int fd, error = 0;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	error = spy_disk_allows(0, bytes);
	if (error)
		return error;
	fd = spy_disk_open(temporary, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return fd;
	while (done < bytes && !error) {
		ssize_t part = write(fd, text + done, bytes - done);

		if (part > 0)
			done += (size_t)part;
		else if (part == 0 || errno != EINTR)
			error = part ? -errno : -ENOSPC;
	}
	close(fd);
	if (!error && rename(temporary, path) < 0)
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}
