/*
 * analyzer/symbols/zstd.h: debug sections that were compressed with zstd, which not every libelf reads. Called by symbolize.c.
 */
#ifndef CUDASPY_ZSTD_H
#define CUDASPY_ZSTD_H

/*
 * A copy of the ELF file in memory in which these sections are not compressed, as a descriptor that the caller closes; -ENOENT: it has none,
 * or is no such file; -ENOTSUP: it has, and there is no libzstd here, or it cannot read them.
 */
int zstd_plain_copy(int fd);

#endif
