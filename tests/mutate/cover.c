/*
 * tests/mutate/cover.c: notes which basic blocks ran, for the map from lines to the tests that execute them.
 * Linked into the library, the command and the unit tests of the build that `tests/mutate/run` measures with;
 * gcc's -fsanitize-coverage=trace-pc calls it in each block, on any thread.
 *
 * gcov would write its files at an exit, through stdio: not in a process that is killed or has a file-size
 * limit, and the shim would record it. This marks a byte of a file that was there before, mapped at the first
 * block: no lock, no allocation, no C library.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define COVER_BYTES (8 << 20) /* of code, at most; COVER_BYTES in coverage.py */
#define COVER_PATH 4096

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern char **environ;

void __sanitizer_cov_trace_pc(void);

static uint8_t *marks;
static int looked;

static long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* The folder is in the variable MUTATE_COVER; the file has the module's name. */
static void find_marks(void)
{
	static const char variable[] = "MUTATE_COVER=", name[] = "/" COVER_NAME;
	char path[COVER_PATH];
	unsigned int at = 0;
	long fd, address;

	for (char **entry = environ; entry && *entry; entry++) {
		const char *text = *entry;
		unsigned int i = 0;

		while (variable[i] && text[i] == variable[i])
			i++;
		if (variable[i])
			continue;
		for (text += i; *text && at < COVER_PATH - sizeof(name); text++)
			path[at++] = *text;
		break;
	}
	if (!at)
		return;
	for (unsigned int i = 0; i < sizeof(name); i++)
		path[at++] = name[i];
	fd = raw_syscall(SYS_open, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return;
	address = raw_syscall(SYS_mmap, 0, COVER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	if (address > 0)
		marks = (uint8_t *)address;
}

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void)
{
	uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;

	if (!marks) {
		/* Before the loader has set environ (resolvers of indirect functions) there is nothing to find. */
		if (looked || !environ)
			return;
		looked = 1;
		find_marks();
		if (!marks)
			return;
	}
	if (at < COVER_BYTES)
		marks[at] = 1;
}
