/*
 * tests/e2e/programs/early.c: a program, and with -DLIBRARY a library it is linked to, that call CUDA before and after
 * everybody else: from .preinit_array, from constructors and destructors of every priority, by linking and by
 * dlsym. Each of the places makes one cudaSetDevice and one cudaGetDevice, and prints that it did.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaGetDevice(int *device);

/* Standard output may not be there yet, or any more. */
static void call(const char *where)
{
	int (*get)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "cudaGetDevice");
	int device = 7, result = cudaSetDevice(1);

	dprintf(STDOUT_FILENO, "%s: %d %d\n", where, result, get ? get(&device) : -1);
}

#define PLACE(kind, name, text) \
	static __attribute__((kind)) void name(void) \
	{ \
		call(text); \
	}

#ifdef LIBRARY
PLACE(constructor(101), library_first, "the library's first constructor")
PLACE(constructor, library_last, "its last constructor")
PLACE(destructor, library_ends, "its destructor")
PLACE(destructor(101), library_ends_last, "its last destructor")
#else
PLACE(constructor(101), program_first, "the program's first constructor")
PLACE(destructor(101), program_ends_last, "the program's last destructor")

static void before_all(void)
{
	call(".preinit_array");
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = before_all;

static void at_exit(void)
{
	call("atexit");
}

int main(void)
{
	atexit(at_exit);
	call("main");
	return 3;
}
#endif
