/*
 * analyzer/expect/expect_copy.c: copies of what calls should cost, for readings of parts of a set. Called by
 * analyzer/parallel/.
 */
#include <stdlib.h>
#include "expect.h"

struct call_class *expect_class_of_key(struct expect *e, const struct class_key *key)
{
	struct call_class *c;

	if (!(key->flags & (CLASS_COPY | CLASS_MEMORY)))
		return expect_find_plain(e, key->fn, key->flags & CLASS_COLD);
	c = expect_place(e, class_key_bits(key))->class;
	return c ? c : expect_add(e, class_key_bits(key));
}

/* As grow makes it. */
static size_t room_for(size_t n)
{
	size_t room = 1;

	while (room < n)
		room *= 2;
	return room;
}

static struct call_class *of_copy(const struct expect *copy, const struct call_class *class)
{
	return class ? copy->classes[class->index] : NULL;
}

static void copy_with(struct expect *copy, const struct expect *e, bool empty)
{
	*copy = *e;
	copy->arena = (struct arena){0};
	copy->n_copied = e->n_classes;
	copy->classes = xcalloc(room_for(e->n_classes), sizeof(struct call_class *));
	for (size_t i = 0; i < e->n_classes; i++) {
		copy->classes[i] = xrealloc(NULL, 1, sizeof(struct call_class));
		if (empty)
			*copy->classes[i] = (struct call_class){.key = e->classes[i]->key,
								.index = e->classes[i]->index};
		else
			*copy->classes[i] = *e->classes[i];
		copy->classes[i]->calls = copy->classes[i]->total_ns = 0;
	}
	copy->plain = xcalloc(e->n_plain, sizeof(struct call_class *));
	for (size_t i = 0; i < e->n_plain; i++)
		copy->plain[i] = of_copy(copy, e->plain[i]);
	copy->table = xcalloc(e->n_table, sizeof(*copy->table));
	for (size_t i = 0; i < e->n_table; i++)
		copy->table[i] =
			(struct class_place){e->table[i].key, of_copy(copy, e->table[i].class)};
}

void expect_copy(struct expect *copy, const struct expect *e)
{
	copy_with(copy, e, false);
}

void expect_copy_empty(struct expect *copy, const struct expect *e)
{
	copy_with(copy, e, true);
}

/* Histograms are the original's, or released; new classes have none. */
void expect_release_copy(struct expect *copy)
{
	for (size_t i = 0; i < copy->n_classes; i++)
		free(copy->classes[i]);
	free(copy->classes);
	free(copy->plain);
	free(copy->table);
	arena_release(&copy->arena);
	*copy = (struct expect){0};
}
