/*
 * tests/sim/mangle.c: the sizes of a kernel's parameters, read from its mangled name (Itanium C++ ABI),
 * because a launch passes only pointers to them and the simulator does not read code. Knows built-in
 * types, pointers, references, and functions and templates without namespaces; anything else is
 * "not known". Called when a kernel is looked up.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct parser {
	const char *p;
	bool failed;
	unsigned short subst[64], args[32];
	int subst_cnt, arg_cnt;
};

static void remember(struct parser *x, unsigned short size)
{
	if (x->subst_cnt < 64)
		x->subst[x->subst_cnt++] = size;
}

/* The number of a back reference: _ is 0, 0_ is 1, ... (base 36). */
static int sequence(struct parser *x)
{
	int n = 0;

	if (*x->p == '_') {
		x->p++;
		return 0;
	}
	for (; *x->p && *x->p != '_'; x->p++)
		n = n * 36 + (*x->p <= '9' ? *x->p - '0' : *x->p - 'A' + 10);
	if (*x->p)
		x->p++;
	return n + 1;
}

static bool skip_name(struct parser *x)
{
	char *end;
	unsigned long len = strtoul(x->p, &end, 10);

	if (end == x->p || strlen(end) < len)
		return false;
	x->p = end + len;
	return true;
}

static unsigned short type(struct parser *x)
{
	static const struct {
		char code;
		unsigned char size;
	} builtin[] = {{'v', 0}, {'b', 1}, {'c', 1}, {'a', 1}, {'h', 1}, {'s', 2},
		       {'t', 2}, {'i', 4}, {'j', 4}, {'l', 8}, {'m', 8}, {'x', 8},
		       {'y', 8}, {'f', 4}, {'d', 8}, {'w', 4}};
	unsigned short size;
	char c = *x->p;
	int n;

	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		if (builtin[i].code == c) {
			x->p++;
			return builtin[i].size;
		}
	switch (c) {
	case 'P':
	case 'R':
	case 'O':
		x->p++;
		type(x);
		remember(x, 8);
		return 8;
	case 'K':
	case 'V':
	case 'r':
		x->p++;
		size = type(x);
		remember(x, size);
		return size;
	case 'S':
		x->p++;
		n = sequence(x);
		if (n < x->subst_cnt)
			return x->subst[n];
		break;
	case 'T':
		x->p++;
		n = sequence(x);
		if (n < x->arg_cnt) {
			remember(x, x->args[n]);
			return x->args[n];
		}
		break;
	default:
		if (c >= '1' && c <= '9' && skip_name(x)) {
			remember(x, 0); /* a class: its size is not in the name */
			return 0;
		}
	}
	x->failed = true;
	return 0;
}

int sim_params_of_name(const char *mangled, unsigned short *sizes, int max)
{
	struct parser x = {.p = mangled + 2};
	int cnt = 0;

	if (strncmp(mangled, "_Z", 2) != 0 || !skip_name(&x))
		return -1;
	if (*x.p == 'I') {
		remember(&x, 0);
		x.p++;
		while (*x.p && *x.p != 'E' && !x.failed) {
			if (*x.p == 'L') {
				while (*x.p && *x.p != 'E')
					x.p++;
				if (*x.p)
					x.p++;
				x.args[x.arg_cnt++ & 31] = 0;
			} else {
				x.args[x.arg_cnt & 31] = type(&x);
				x.arg_cnt++;
			}
			if (x.arg_cnt >= 32)
				return -1;
		}
		if (*x.p)
			x.p++;
		type(&x); /* a template's return type */
	}
	if (!strcmp(x.p, "v"))
		return 0;
	while (*x.p && !x.failed && cnt < max) {
		sizes[cnt] = type(&x);
		if (!sizes[cnt++])
			return -1;
	}
	return x.failed || *x.p ? -1 : cnt;
}
