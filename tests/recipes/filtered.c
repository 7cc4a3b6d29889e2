/*
 * tests/recipes/filtered.c: runs a command in which some system calls fail with EPERM, as a container's seccomp profile has it.
 *
 *   filtered NAME,NAME... COMMAND [ARGUMENT...]
 *
 * Names that this kernel's headers do not know are left out. Status 126 if there are no filters here.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	int number;
} calls[] = {
#define CALL(name) \
	{ \
#name, SYS_##name \
	}
#include "syscalls.def"
};

enum { MOST = 250 }; /* jumps are 8 bits wide */

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	return -1;
}

/* Each refused call jumps to the end, where the answer is. */
static unsigned short write_filter(struct sock_filter *code, char *names)
{
	int numbers[MOST], n = 0, number;
	unsigned short at = 0;
	char *name;

	while ((name = strsep(&names, ",")) && n < MOST)
		if ((number = number_of(name)) >= 0)
			numbers[n++] = number;
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (int i = 0; i < n; i++)
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  (unsigned int)numbers[i],
							  (unsigned char)(n - i), 0);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	return at;
}

int main(int argc, char **argv)
{
	static struct sock_filter code[MOST + 4];
	struct sock_fprog program = {.filter = code};

	if (argc < 3) {
		fprintf(stderr, "filtered NAME,NAME... COMMAND [ARGUMENT...]\n");
		return 2;
	}
	program.len = write_filter(code, argv[1]);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "filtered: no filter: %s\n", strerror(errno));
		return 126;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "filtered: %s: %s\n", argv[2], strerror(errno));
	return 127;
}
