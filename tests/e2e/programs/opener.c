/*
 * tests/e2e/programs/opener.c: a library that opens another one by a name that only its own way of searching finds
 * (DT_RPATH, DT_RUNPATH, $ORIGIN), and, compiled with -DFOUND=N, that other one.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#ifdef FOUND
int found(void);

int found(void)
{
	return FOUND;
}
#else
void open_for_me(const char *name, int separate);

void open_for_me(const char *name, int separate)
{
	void *handle = separate ? dlmopen(LM_ID_NEWLM, name, RTLD_NOW) : dlopen(name, RTLD_NOW);
	int (*function)(void) = handle ? (int (*)(void))dlsym(handle, "found") : NULL;

	printf("%s%s: %d\n", name, separate ? " apart" : "", function ? function() : -1);
	if (handle)
		dlclose(handle);
}
#endif
