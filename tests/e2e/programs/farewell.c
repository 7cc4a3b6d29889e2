/*
 * tests/e2e/programs/farewell.c: a library whose destructor, which runs behind the shim's, makes as many calls as FAREWELL says,
 * in the program called life.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cudaSetDevice(int device);

static __attribute__((destructor)) void say_farewell(void)
{
	const char *many = getenv("FAREWELL");

	if (strcmp(program_invocation_short_name, "life") != 0)
		return;
	for (int i = 0; many && i < atoi(many); i++)
		cudaSetDevice(0);
}
