/*
 * shim/stack/unwind.c: return addresses from the application's stack, by the tables for exceptions.
 * Called by stack.c on the application's thread; see unwind.h for what it must not do. Registers
 * have DWARF's numbers (registers.h); another architecture has its own step_beyond_tables, too.
 *
 * Sources: DWARF 5, sections 2.5 and 6.4; LSB Core, "Exception Frames"; System V ABI, AMD64
 * supplement, section 3.6.
 */
#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>
#include "arch/registers.h"
#include "process/elf_scan.h"
#include "lib/peek.h"
#include "stack/unwind.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

/* Of the application's stack, which sanitizers must not check. */
#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

/* ---- a walk --------------------------------------------------------------------------------- */

#define STACK_MOST ((uintptr_t)8 << 20)
#define OURS_MOST 12 /* functions of ours, or a sanitizer's, on top of the application's */

struct walk {
	uint64_t regs[REGISTERS];
	uint32_t known; /* a bit for each register whose value we have */
	bool exact; /* the ip is where the function was interrupted, not where a call returns to */
	uintptr_t begin, end; /* of the stack that can be read directly … */
	uintptr_t words; /* … where it is, or a copy of it … */
	uintptr_t changed; /* … up to where it is another one by now; 0: nowhere */
	uintptr_t own_begin, own_end; /* of the recorder's own stack, likewise where it is */
	int pid; /* of the process; 0: not asked for yet */
};

static bool is_known(const struct walk *w, uint64_t reg)
{
	return reg < REGISTERS && w->known >> reg & 1;
}

/* A word of the application's. False: it cannot be read. */
UNCHECKED static bool read_word(struct walk *w, uint64_t at, uint64_t *value)
{
	if (at % sizeof(*value))
		return false;
	if (at >= w->begin && at < w->end) {
		*value = *(const volatile uint64_t *)(w->words + (at - w->begin));
		return true;
	}
	if (at >= w->own_begin && at < w->own_end) {
		*value = *(const volatile uint64_t *)at;
		return true;
	}
	if (at >= w->end && at < w->changed)
		return false;
	w->pid = w->pid ?: getpid();
	return spy_peek(w->pid, value, at, sizeof(*value));
}

/* ---- bytes of a table ----------------------------------------------------------------------- */

/* What is read beyond the end, or makes no sense, is 0 and leaves its mark. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t take(struct cursor *c, size_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)*c->at++ << 8 * i;
	return value;
}

static int64_t take_signed(struct cursor *c, size_t bytes)
{
	unsigned int unused = 64 - 8 * (unsigned int)bytes;

	return (int64_t)(take(c, bytes) << unused) >> unused;
}

static void skip(struct cursor *c, uint64_t bytes)
{
	c->bad |= bytes > (uint64_t)(c->end - c->at);
	c->at = c->bad ? c->end : c->at + bytes;
}

/* LEB128. */
static uint64_t take_number(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= ~0ull << shift;
	return value;
}

/* A pointer as its encoding (DW_EH_PE_*) says; of the relative ones only those to where it
 * stands. */
static uint64_t take_pointer(struct cursor *c, uint8_t encoding)
{
	uint64_t here = (uintptr_t)c->at, value = 0;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = take(c, 8);
		break;
	case DW_EH_PE_uleb128:
	case DW_EH_PE_sleb128:
		value = take_number(c, encoding & DW_EH_PE_signed);
		break;
	case DW_EH_PE_udata2:
		value = take(c, 2);
		break;
	case DW_EH_PE_udata4:
		value = take(c, 4);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)take_signed(c, 2);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)take_signed(c, 4);
		break;
	default:
		c->bad = true;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value += here;
	else if (encoding & 0x70)
		c->bad = true;
	return value;
}

/* ---- the object an address lies in ---------------------------------------------------------- */

/* What an object says of an address. */
struct tables {
	bool in_object, code; /* it lies in one; in its code */
	uintptr_t object; /* where that begins */
	const uint8_t *begin, *end; /* the segment the tables lie in … */
	const uint8_t *index; /* … and the index into them; NULL: none */
};

static void look_at_object(uint64_t ip, uintptr_t base, const ElfW(Phdr) * phdr, size_t n,
			   struct tables *t)
{
	uintptr_t index = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t begin = base + phdr[i].p_vaddr;

		if (phdr[i].p_type == PT_GNU_EH_FRAME)
			index = begin;
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_flags & PF_X)
			t->code |= ip >= begin && ip - begin < phdr[i].p_memsz;
	}
	for (size_t i = 0; index && i < n; i++) {
		uintptr_t begin = base + phdr[i].p_vaddr;

		/* (What lies before it is very far behind it.) */
		if (phdr[i].p_type != PT_LOAD || !(phdr[i].p_flags & PF_R) ||
		    index - begin >= phdr[i].p_filesz)
			continue;
		t->begin = (const uint8_t *)begin;
		t->end = t->begin + phdr[i].p_filesz;
		t->index = (const uint8_t *)index;
		return;
	}
}

struct search {
	uint64_t ip;
	struct tables *tables;
};

static int visit(const struct spy_object *object, void *data)
{
	struct search *search = data;

	if (search->ip < object->begin || search->ip >= object->end)
		return 0;
	search->tables->in_object = true;
	search->tables->object = object->begin;
	look_at_object(search->ip, object->base, object->phdr, object->phdr_count, search->tables);
	return 1;
}

bool spy_unwind_by_list;

/* The loader's list is walked under its lock, as modules.c does at each packet. */
static void find_by_list(uint64_t ip, struct tables *t)
{
	struct search search = {.ip = ip, .tables = t};

	spy_try_each_object(visit, &search);
}

#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 35)
/* Looked up, not linked: the library is to load where glibc is older. */
static int (*find_object)(void *address, struct dl_find_object *object);

void spy_unwind_init(void)
{
	*(void **)&find_object = spy_next_symbol("_dl_find_object");
}

/* The program headers stand in the object's first page, behind the file's header. */
static void find_tables(uint64_t ip, struct tables *t)
{
	struct dl_find_object object;
	const ElfW(Ehdr) * header;

	*t = (struct tables){0};
	if (!find_object || spy_unwind_by_list) {
		find_by_list(ip, t);
		return;
	}
	t->in_object = find_object((void *)ip, &object) == 0;
	if (!t->in_object)
		return;
	header = object.dlfo_map_start;
	t->object = (uintptr_t)header;
	if (*(const uint32_t *)header->e_ident != *(const uint32_t *)ELFMAG ||
	    header->e_phentsize != sizeof(ElfW(Phdr)) ||
	    header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > 4096)
		find_by_list(ip, t);
	else
		look_at_object(ip, object.dlfo_link_map->l_addr,
			       (const ElfW(Phdr) *)((const char *)header + header->e_phoff),
			       header->e_phnum, t);
}
#else
void spy_unwind_init(void)
{
}

static void find_tables(uint64_t ip, struct tables *t)
{
	*t = (struct tables){0};
	find_by_list(ip, t);
}
#endif

/* ---- a function's entry --------------------------------------------------------------------- */

/* What an entry (FDE) and what it shares with others (CIE) say. */
struct entry {
	uint64_t begin, size; /* of the function */
	struct cursor common, own; /* instructions */
	uint64_t code_unit;
	int64_t data_unit;
	uint8_t encoding; /* of pointers */
	bool augmented, signal;
};

/* The index: 4-byte pairs (function, entry), sorted, relative to the index itself. NULL: none,
 * or of another form than linkers write. */
static const uint8_t *find_entry(const struct tables *t, uint64_t ip)
{
	struct cursor c = {.at = t->index, .end = t->end};
	uint64_t head = take(&c, 4), n, low = 0, high;
	int64_t wanted = (int64_t)(ip - (uintptr_t)t->index);
	const uint8_t *rows;

	/* version 1, 4-byte pointer to the tables, udata4 count, datarel | sdata4 rows */
	if ((head & 0xffff00ff) != 0x3b030001 || ((head >> 8 & 7) != 3))
		return NULL;
	take(&c, 4);
	n = take(&c, 4);
	rows = c.at;
	if (c.bad || n > (uint64_t)(c.end - c.at) / 8)
		return NULL;
	for (high = n; low < high;) {
		uint64_t middle = low + (high - low) / 2;

		c.at = rows + 8 * middle;
		if (take_signed(&c, 4) <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	c.at = rows + 8 * low - 4;
	return t->index + take_signed(&c, 4);
}

/* The body of an entry at `at`; the cursor then ends with it. */
static struct cursor open_entry(const struct tables *t, const uint8_t *at)
{
	struct cursor c = {.at = at, .end = t->end, .bad = at < t->begin || at >= t->end};
	uint64_t bytes;

	if (c.bad)
		return c;
	bytes = take(&c, 4); /* 0xffffffff, 64-bit DWARF, is more than there is */
	/* (Nothing can be taken from 0 bytes, the end of all.) */
	c.bad |= bytes > (uint64_t)(c.end - c.at);
	if (!c.bad)
		c.end = c.at + bytes;
	return c;
}

static bool read_augmentation(struct cursor *c, const char *letters, struct entry *e)
{
	struct cursor data;
	uint64_t bytes;

	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	e->augmented = true;
	bytes = take_number(c, false);
	data = *c;
	skip(c, bytes);
	data.end = c->at;
	while (*++letters) {
		if (*letters == 'R')
			e->encoding = (uint8_t)take(&data, 1);
		else if (*letters == 'L')
			take(&data, 1);
		else if (*letters == 'P')
			take_pointer(&data, take(&data, 1) & 0x0f);
		else if (*letters == 'S')
			e->signal = true;
		else
			break; /* unknown ones, and what is behind them, are not needed */
	}
	return !data.bad && !c->bad;
}

static bool read_common(const struct tables *t, const uint8_t *at, struct entry *e)
{
	struct cursor c = open_entry(t, at);
	uint64_t id = take(&c, 4), version = take(&c, 1);
	const char *letters = (const char *)c.at;

	if (id || (version != 1 && version != 3))
		return false;
	while (take(&c, 1))
		;
	e->code_unit = take_number(&c, false);
	e->data_unit = (int64_t)take_number(&c, true);
	if ((version == 1 ? take(&c, 1) : take_number(&c, false)) != REG_IP || c.bad ||
	    !read_augmentation(&c, letters, e))
		return false;
	e->common = c;
	return true;
}

/* False: no entry that we understand is for this address. */
static bool read_entry(const struct tables *t, uint64_t ip, struct entry *e)
{
	const uint8_t *at = find_entry(t, ip), *here;
	struct cursor c;
	uint64_t back;

	if (!at)
		return false;
	*e = (struct entry){0};
	c = open_entry(t, at);
	here = c.at;
	back = take(&c, 4); /* to the common part */
	if (c.bad || !back || back > (uint64_t)(here - t->begin) || !read_common(t, here - back, e))
		return false;
	e->begin = take_pointer(&c, e->encoding);
	e->size = take_pointer(&c, e->encoding & 0x0f);
	if (e->augmented)
		skip(&c, take_number(&c, false));
	e->own = c;
	return !c.bad && ip >= e->begin && ip - e->begin < e->size;
}

/* ---- where the caller's registers are ------------------------------------------------------- */

enum rule {
	RULE_SAME,
	RULE_UNDEFINED,
	RULE_OFFSET,
	RULE_VAL_OFFSET,
	RULE_REGISTER,
	RULE_EXPRESSION,
	RULE_VAL_EXPRESSION
};

/* A row of the table; the frame's address (CFA) is register + offset, or what an expression
 * says. */
struct row {
	uint8_t rule[REGISTERS]; /* enum rule */
	int64_t value[REGISTERS]; /* offset or register of the rule, or address of the expression */
	uint64_t cfa_reg;
	int64_t cfa_offset;
	const uint8_t *cfa_expression; /* its length first; NULL: none */
};

#define SAVED_MOST 4

struct program {
	const struct entry *entry;
	uint64_t at, wanted;
	struct row row, first; /* first: as the common instructions left it */
	struct row saved[SAVED_MOST];
	unsigned int n_saved;
};

static void set_rule(struct program *p, struct cursor *c, uint64_t reg, enum rule rule,
		     int64_t value)
{
	/* Registers that callers do not expect back have rules, too: we do not follow them. */
	(void)c;
	if (reg < REGISTERS) {
		p->row.rule[reg] = (uint8_t)rule;
		p->row.value[reg] = value;
	}
}

static void restore(struct program *p, uint64_t reg)
{
	if (reg < REGISTERS) {
		p->row.rule[reg] = p->first.rule[reg];
		p->row.value[reg] = p->first.value[reg];
	}
}

/* The address of a block, which is passed over. */
static const uint8_t *take_block(struct cursor *c)
{
	const uint8_t *block = c->at;

	skip(c, take_number(c, false));
	return block;
}

static void remember(struct program *p, struct cursor *c)
{
	if (p->n_saved < SAVED_MOST)
		p->saved[p->n_saved++] = p->row;
	else
		c->bad = true;
}

static void recall(struct program *p, struct cursor *c)
{
	if (p->n_saved)
		p->row = p->saved[--p->n_saved];
	else
		c->bad = true;
}

static void define_cfa(struct program *p, uint64_t reg, int64_t offset)
{
	p->row.cfa_reg = reg;
	p->row.cfa_offset = offset;
	p->row.cfa_expression = NULL;
}

/* Instructions whose number is in their whole byte. */
static void run_extended(struct program *p, struct cursor *c, uint8_t code)
{
	int64_t unit = p->entry->data_unit;
	uint64_t reg;

	switch (code) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		p->at = take_pointer(c, p->entry->encoding);
		break;
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
		p->at += take(c, (size_t)1 << (code - DW_CFA_advance_loc1)) * p->entry->code_unit;
		break;
	case DW_CFA_offset_extended:
		reg = take_number(c, false);
		set_rule(p, c, reg, RULE_OFFSET, (int64_t)take_number(c, false) * unit);
		break;
	case DW_CFA_restore_extended:
		restore(p, take_number(c, false));
		break;
	case DW_CFA_undefined:
		set_rule(p, c, take_number(c, false), RULE_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_rule(p, c, take_number(c, false), RULE_SAME, 0);
		break;
	case DW_CFA_register:
		reg = take_number(c, false);
		set_rule(p, c, reg, RULE_REGISTER, (int64_t)take_number(c, false));
		break;
	case DW_CFA_remember_state:
		remember(p, c);
		break;
	case DW_CFA_restore_state:
		recall(p, c);
		break;
	case DW_CFA_def_cfa:
		reg = take_number(c, false);
		define_cfa(p, reg, (int64_t)take_number(c, false));
		break;
	case DW_CFA_def_cfa_register:
		define_cfa(p, take_number(c, false), p->row.cfa_offset);
		break;
	case DW_CFA_def_cfa_offset:
		define_cfa(p, p->row.cfa_reg, (int64_t)take_number(c, false));
		break;
	case DW_CFA_def_cfa_expression:
		p->row.cfa_expression = take_block(c);
		break;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		reg = take_number(c, false);
		set_rule(p, c, reg,
			 code == DW_CFA_expression ? RULE_EXPRESSION : RULE_VAL_EXPRESSION,
			 (int64_t)(uintptr_t)take_block(c));
		break;
	case DW_CFA_offset_extended_sf:
		reg = take_number(c, false);
		set_rule(p, c, reg, RULE_OFFSET, (int64_t)take_number(c, true) * unit);
		break;
	case DW_CFA_def_cfa_sf:
		reg = take_number(c, false);
		define_cfa(p, reg, (int64_t)take_number(c, true) * unit);
		break;
	case DW_CFA_def_cfa_offset_sf:
		define_cfa(p, p->row.cfa_reg, (int64_t)take_number(c, true) * unit);
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		reg = take_number(c, false);
		set_rule(p, c, reg, RULE_VAL_OFFSET,
			 (int64_t)take_number(c, code == DW_CFA_val_offset_sf) * unit);
		break;
	case DW_CFA_GNU_args_size:
		take_number(c, false);
		break;
	default:
		c->bad = true;
	}
}

/* Runs instructions as far as the wanted address. */
static bool run(struct program *p, struct cursor c)
{
	while (c.at < c.end && !c.bad && p->at <= p->wanted) {
		uint8_t code = (uint8_t)take(&c, 1), low = code & 0x3f;

		if ((code & 0xc0) == DW_CFA_advance_loc) {
			p->at += low * p->entry->code_unit;
		} else if ((code & 0xc0) == DW_CFA_offset) {
			set_rule(p, &c, low, RULE_OFFSET,
				 (int64_t)take_number(&c, false) * p->entry->data_unit);
		} else if ((code & 0xc0) == DW_CFA_restore) {
			restore(p, low);
		} else {
			run_extended(p, &c, code);
		}
	}
	return !c.bad;
}

/* ---- expressions ---------------------------------------------------------------------------- */

#define DEPTH 16

struct machine {
	uint64_t stack[DEPTH];
	unsigned int n;
	bool bad;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->n < DEPTH)
		m->stack[m->n++] = value;
	else
		m->bad = true;
}

static uint64_t pop(struct machine *m)
{
	if (!m->n) {
		m->bad = true;
		return 0;
	}
	return m->stack[--m->n];
}

static void compute(struct machine *m, uint8_t code)
{
	uint64_t b = pop(m), a = pop(m);
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (code) {
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_or:
		push(m, a | b);
		break;
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_shl:
		push(m, b < 64 ? a << b : 0);
		break;
	case DW_OP_shr:
		push(m, b < 64 ? a >> b : 0);
		break;
	case DW_OP_eq:
		push(m, a == b);
		break;
	case DW_OP_ge:
		push(m, sa >= sb);
		break;
	case DW_OP_gt:
		push(m, sa > sb);
		break;
	case DW_OP_le:
		push(m, sa <= sb);
		break;
	case DW_OP_lt:
		push(m, sa < sb);
		break;
	case DW_OP_ne:
		push(m, a != b);
		break;
	default:
		m->bad = true;
	}
}

/* One operation: those that compilers and the C library use for frames. */
static void operate(struct walk *w, struct machine *m, struct cursor *c)
{
	uint8_t code = (uint8_t)take(c, 1);
	uint64_t value;

	if (code >= DW_OP_lit0 && code <= DW_OP_lit31) {
		push(m, code - (unsigned int)DW_OP_lit0);
	} else if (code >= DW_OP_breg0 && code <= DW_OP_breg31) {
		value = take_number(c, true);
		m->bad |= !is_known(w, code - (unsigned int)DW_OP_breg0);
		push(m, m->bad ? 0 : value + w->regs[code - DW_OP_breg0]);
	} else if (code == DW_OP_deref) {
		m->bad |= !read_word(w, pop(m), &value);
		push(m, m->bad ? 0 : value);
	} else if (code == DW_OP_const1u || code == DW_OP_const2u || code == DW_OP_const4u ||
		   code == DW_OP_const8u) {
		push(m, take(c, (size_t)1 << (code - DW_OP_const1u) / 2));
	} else if (code == DW_OP_const1s || code == DW_OP_const2s || code == DW_OP_const4s ||
		   code == DW_OP_const8s) {
		push(m, (uint64_t)take_signed(c, (size_t)1 << (code - DW_OP_const1s) / 2));
	} else if (code == DW_OP_constu || code == DW_OP_consts) {
		push(m, take_number(c, code == DW_OP_consts));
	} else if (code == DW_OP_dup) {
		value = pop(m);
		push(m, value);
		push(m, value);
	} else if (code == DW_OP_plus_uconst) {
		push(m, pop(m) + take_number(c, false));
	} else {
		compute(m, code);
	}
}

/* An expression's block has been found to lie in its table. */
static bool evaluate(struct walk *w, const uint8_t *block, const uint64_t *first, uint64_t *value)
{
	struct cursor c = {.at = block, .end = block + 10};
	struct machine m = {0};
	uint64_t bytes = take_number(&c, false);

	c.end = c.at + bytes;
	if (first)
		push(&m, *first);
	while (c.at < c.end && !c.bad && !m.bad)
		operate(w, &m, &c);
	*value = pop(&m);
	return !c.bad && !m.bad;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static bool find_cfa(struct walk *w, const struct row *row, uint64_t *cfa)
{
	if (row->cfa_expression)
		return evaluate(w, row->cfa_expression, NULL, cfa);
	if (!is_known(w, row->cfa_reg))
		return false;
	*cfa = w->regs[row->cfa_reg] + (uint64_t)row->cfa_offset;
	return true;
}

/* The caller's value of a register. */
static bool apply_rule(struct walk *w, const struct row *row, uint64_t cfa, unsigned int reg,
		       uint64_t *value)
{
	int64_t how = row->value[reg];
	bool known;

	switch ((enum rule)row->rule[reg]) {
	case RULE_SAME:
		known = is_known(w, reg);
		*value = known ? w->regs[reg] : 0;
		return known;
	case RULE_OFFSET:
		return read_word(w, cfa + (uint64_t)how, value);
	case RULE_VAL_OFFSET:
		*value = cfa + (uint64_t)how;
		return true;
	case RULE_REGISTER:
		known = is_known(w, (uint64_t)how);
		*value = known ? w->regs[how] : 0;
		return known;
	case RULE_EXPRESSION:
		return evaluate(w, (const uint8_t *)how, &cfa, value) &&
		       read_word(w, *value, value);
	case RULE_VAL_EXPRESSION:
		return evaluate(w, (const uint8_t *)how, &cfa, value);
	case RULE_UNDEFINED:
		break;
	}
	return false;
}

/* All registers at once: the rules speak of the callee's. */
static bool step_by_row(struct walk *w, const struct row *row, bool signal)
{
	struct walk caller = *w;
	uint64_t cfa;

	if (!find_cfa(w, row, &cfa))
		return false;
	caller.known = 0;
	for (unsigned int reg = 0; reg < REGISTERS; reg++)
		if ((reg == REG_BX || reg == REG_BP || reg >= REG_12 || signal) &&
		    apply_rule(w, row, cfa, reg, &caller.regs[reg]))
			caller.known |= 1u << reg;
	/* A signal may have come on another stack; else callers lie above. */
	if (!signal || row->rule[REG_SP] == RULE_SAME) {
		if (cfa <= w->regs[REG_SP])
			return false;
		caller.regs[REG_SP] = cfa;
		caller.known |= 1u << REG_SP;
	}
	caller.exact = signal;
	*w = caller;
	return is_known(w, REG_IP) && is_known(w, REG_SP) && w->regs[REG_IP];
}

/* The row for an address. False: none that we understand. */
static bool find_row(const struct tables *tables, uint64_t ip, struct program *p, bool *signal)
{
	struct entry entry;
	bool found;

	if (!tables->code || !tables->index || !read_entry(tables, ip, &entry))
		return false;
	*signal = entry.signal;
	*p = (struct program){.entry = &entry, .wanted = UINT64_MAX};
	p->row.cfa_reg = REGISTERS;
	found = run(p, entry.common);
	p->first = p->row;
	p->at = entry.begin;
	p->wanted = ip;
	found = found && run(p, entry.own);
	p->entry = NULL;
	return found;
}

/* Eight bytes of code from an address on. */
static bool read_code(struct walk *w, uint64_t at, uint64_t *code)
{
	unsigned int shift = 8 * (at & 7);
	uint64_t low = 0, high = 0;
	bool any = read_word(w, at & ~7ull, &low);

	/* Where code begins or ends with its page, what is beyond reads as 0. */
	if (shift)
		any |= read_word(w, (at & ~7ull) + 8, &high);
	*code = shift ? low >> shift | high << (64 - shift) : low;
	return any;
}

/* Does the code before the address call something? call rel32, or a call through a register or
 * memory. */
static bool after_call(struct walk *w, uint64_t ip)
{
	uint8_t *at;
	uint64_t code;

	if (ip < 8 || !read_code(w, ip - 8, &code))
		return false;
	at = (uint8_t *)&code;
	if (at[3] == 0xe8)
		return true;
	for (unsigned int back = 2; back <= 7; back++)
		if (at[8 - back] == 0xff && (at[9 - back] & 0x38) == 0x10)
			return true;
	return false;
}

/*
 * Code without tables, made while the program runs. Much of it returns right after the call (the
 * trampolines of Python's perf support do): what it is about to do says where its caller is. Else
 * it may have a frame pointer.
 */
static bool step_beyond_tables(struct walk *w)
{
	uint64_t sp = w->regs[REG_SP], bp = w->regs[REG_BP], code;

	if (!after_call(w, w->regs[REG_IP]) || !read_code(w, w->regs[REG_IP], &code))
		return false;
	w->exact = false;
	w->known &= ~(1u << REG_IP);
	if ((code & 0x80ffffff) == 0x00c48348) { /* add $n, %rsp */
		sp += code >> 24 & 0x7f;
		code >>= 32;
	}
	if ((code & 0xff) == 0xc3) { /* ret */
		w->regs[REG_SP] = sp + 8;
	} else if ((code & 0xffff) == 0xc35d) { /* pop %rbp; ret */
		if (!read_word(w, sp, &w->regs[REG_BP]))
			return false;
		w->regs[REG_SP] = sp + 16;
	} else if (is_known(w, REG_BP) && bp >= sp && read_word(w, bp, &w->regs[REG_BP])) {
		w->regs[REG_SP] = bp + 16;
	} else {
		return false;
	}
	if (!read_word(w, w->regs[REG_SP] - 8, &w->regs[REG_IP]))
		return false;
	w->known |= 1u << REG_IP;
	return w->regs[REG_IP] != 0;
}

/* Can an address that was found be a return address? It lies in an object's code, or behind a
 * call. */
static bool is_believable(struct walk *w)
{
	struct tables tables;

	find_tables(w->regs[REG_IP] - !w->exact, &tables);
	return tables.in_object ? tables.code : after_call(w, w->regs[REG_IP]);
}

/* To the function that called this one. False: there is none, or it is unknown. */
static bool step(struct walk *w)
{
	uint64_t ip = w->regs[REG_IP] - !w->exact;
	struct tables tables;
	struct program p;
	bool signal;

	find_tables(ip, &tables);
	if (find_row(&tables, ip, &p, &signal))
		return step_by_row(w, &p.row, signal);
	return step_beyond_tables(w);
}

/*
 * To the application's frame. Functions on the way keep rbx and r12 to r15 where their tables say;
 * if we cannot follow those, the walk begins without these registers, which few functions need.
 */
static void begin(struct walk *w, const struct spy_unwind *start)
{
	w->known = CAPTURED;
	w->exact = true;
	for (unsigned int i = 0; i < OURS_MOST && w->regs[REG_SP] < start->sp && step(w); i++)
		;
	if (w->regs[REG_SP] == start->sp && w->regs[REG_IP] == start->ip && is_known(w, REG_SP) &&
	    is_known(w, REG_IP))
		return;
	w->regs[REG_IP] = start->ip;
	w->regs[REG_SP] = start->sp;
	w->regs[REG_BP] = start->bp;
	w->known = 1u << REG_IP | 1u << REG_SP | 1u << REG_BP;
	w->exact = false;
}

static size_t walk_up(struct walk *w, uint64_t *frames, size_t most)
{
	size_t n = 0;

	do {
		if (n && !is_believable(w))
			break;
		frames[n++] = w->regs[REG_IP];
	} while (n < most && step(w));
	return n;
}

/* Where one word can be read, so can the rest of its page. */
static uintptr_t page_of(uintptr_t address)
{
	return address & ~(uintptr_t)4095;
}

size_t spy_unwind(const struct spy_unwind *start, uint64_t *frames, size_t most)
{
	struct walk w = {0};

	CAPTURE(w.regs);
	w.begin = w.words = page_of(start->stack_begin);
	w.end = start->stack_end & ~7ull;
	w.own_begin = page_of((uintptr_t)__builtin_frame_address(0));
	w.own_end = start->own_end;
	begin(&w, start);
	return walk_up(&w, frames, most);
}

static uint64_t function_in(const struct tables *tables, uint64_t ip)
{
	struct entry entry;

	return tables->code && tables->index && read_entry(tables, ip, &entry) ? entry.begin : 0;
}

static uint64_t function_of(uint64_t ip)
{
	struct tables tables;

	find_tables(ip, &tables);
	return function_in(&tables, ip);
}

static struct walk walk_from(const struct spy_interrupted *at)
{
	struct walk w = {.known = CAPTURED | 1u << REG_SP, .exact = true};

	for (size_t i = 0; i < REGISTERS_KEPT; i++)
		w.regs[spy_registers_kept[i]] = at->registers[i];
	w.begin = w.regs[REG_SP];
	w.words = (uintptr_t)at->stack;
	w.end = w.begin + (at->stack_bytes & ~7ull);
	w.changed = w.end + STACK_MOST;
	return w;
}

uintptr_t spy_unwind_object(uintptr_t address)
{
	struct tables tables;

	find_tables(address, &tables);
	return tables.in_object ? tables.object : 0;
}

/* What the function has on the stack, as far as it was copied. */
static void describe_words(const struct walk *w, uint64_t caller_sp, struct spy_unwound *f)
{
	uint64_t sp = w->regs[REG_SP], end = caller_sp < w->end ? caller_sp : w->end;

	if (sp < w->begin || sp >= end || sp % sizeof(uint64_t))
		return;
	f->words = (const uint64_t *)(w->words + (sp - w->begin));
	f->n_words = (end - sp) / sizeof(uint64_t);
}

void spy_unwind_each(const struct spy_interrupted *at, spy_unwind_visit *show, void *data)
{
	struct walk w = walk_from(at);
	bool more = w.begin % sizeof(uint64_t) == 0;

	for (size_t n = 0; more && n < SPY_UNWIND_MOST; n++) {
		const struct walk here = w;
		uint64_t ip = w.regs[REG_IP] - !w.exact;
		struct spy_unwound f = {.registers = here.regs};
		struct tables tables;

		find_tables(ip, &tables);
		f.object = tables.in_object ? tables.object : 0;
		f.function = function_in(&tables, ip);
		f.known = here.known & (CAPTURED & ~(1u << REG_IP | 1u << REG_SP));
		more = step(&w) && is_believable(&w);
		if (more)
			describe_words(&here, w.regs[REG_SP], &f);
		more &= show(&f, data);
	}
}

size_t spy_unwind_interrupted(const struct spy_interrupted *at, uint64_t *frames, size_t most,
			      uint64_t *function)
{
	struct walk w = walk_from(at);
	size_t n = w.begin % sizeof(uint64_t) ? 0 : walk_up(&w, frames, most);

	*function = n ? function_of(frames[0]) : 0;
	if (n)
		frames[0]++; /* as if it had called something there, like the others */
	return n;
}
