/*
 * tests/e2e/programs/fake_python.c: a library that looks like CPython 3.12, of the version FAKE_PYTHON (hexadecimal),
 * and can be unloaded, as the real one hardly can. Every thread is in line 7 of f in fake.py.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct member {
	const char *name;
	uint64_t type, offset, flags, text;
};

static struct member members[] = {{"co_firstlineno", 1, 68, 1, 0},
				  {"co_filename", 6, 112, 1, 0},
				  {"co_qualname", 6, 128, 1, 0},
				  {"co_linetable", 6, 136, 1, 0},
				  {0}};

/* Name, size and members of a type are words 3, 4 and 30. */
#define TYPE(variable, name, size, first_member) \
	const void *variable[52] = { \
		[3] = (name), [4] = (const void *)(uintptr_t)(size), [30] = (first_member)}
TYPE(PyCode_Type, "code", 192, members);
TYPE(PyUnicode_Type, "str", 64, NULL);
TYPE(PyBytes_Type, "bytes", 33, NULL);
TYPE(PyFrame_Type, "frame", 72, NULL);
unsigned long Py_Version;
uint64_t _PyRuntime[128];

static uint64_t file[8], function[8], table[8], code[32], frame[16];
static __thread uint64_t state[32], cframe[2];

static void set_text(uint64_t *object, const char *text)
{
	object[1] = (uintptr_t)PyUnicode_Type;
	object[2] = strlen(text);
	object[4] = 1 << 2 | 1 << 5 | 1 << 6;
	memcpy(&object[5], text, strlen(text) + 1);
}

__attribute__((constructor)) static void load(void)
{
	const char *version = getenv("FAKE_PYTHON");

	Py_Version = version ? strtoul(version, NULL, 16) : 0x030c01f0;
	set_text(file, "fake.py");
	set_text(function, "f");
	table[1] = (uintptr_t)PyBytes_Type;
	table[2] = 3;
	memcpy(&table[4], "\xd7\0\1", 3); /* 8 units of the first line */
	code[1] = (uintptr_t)PyCode_Type;
	code[2] = 8;
	*(uint32_t *)((char *)code + 68) = 7;
	code[14] = (uintptr_t)file;
	code[16] = (uintptr_t)function;
	code[17] = (uintptr_t)table;
	frame[0] = (uintptr_t)code;
	frame[7] = (uintptr_t)&code[24];
}

void *PyGILState_GetThisThreadState(void);

void *PyGILState_GetThisThreadState(void)
{
	cframe[0] = (uintptr_t)frame;
	state[7] = (uintptr_t)cframe;
	state[17] = (uint64_t)pthread_self();
	return state;
}
