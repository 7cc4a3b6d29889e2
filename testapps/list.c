/*
 * testapps/list.c: options that are lists: see list.h. Called from main.
 */
#include "list.h"
#include "common.h"

#include <stdlib.h>
#include <string.h>

bool list_next(const char **list, char item[LIST_ITEM_MAX])
{
	size_t length = strcspn(*list, ","), kept = length;

	if (!**list)
		return false;
	if (kept > LIST_ITEM_MAX - 1)
		kept = LIST_ITEM_MAX - 1;
	memcpy(item, *list, kept);
	item[kept] = '\0';
	*list += length;
	if (**list)
		++*list;
	return true;
}

bool list_has(const char *list, const char *name)
{
	char item[LIST_ITEM_MAX];

	if (!strcmp(list, "all"))
		return true;
	while (list_next(&list, item))
		if (!strcmp(item, name))
			return true;
	return false;
}

void list_check(const char *option, const char *list, bool (*there)(const char *name))
{
	const char *rest = list;
	char item[LIST_ITEM_MAX];

	if (!*list)
		usage_error("--%s: an empty list", option);
	while (strcmp(list, "all") && list_next(&rest, item))
		if (!there(item))
			usage_error("--%s %s: there is no '%s'", option, list, item);
}

int list_numbers(const char *option, const char *list, long *numbers, int max, long most)
{
	char item[LIST_ITEM_MAX], *end;
	const char *rest = list;
	int count = 0;

	while (list_next(&rest, item)) {
		long number = strtol(item, &end, 10);

		if (end == item || *end || number < 1 || number > most)
			usage_error("--%s %s: '%s' is not a whole number from 1 to %ld", option,
				    list, item, most);
		if (count == max)
			usage_error("--%s %s: more than %d numbers", option, list, max);
		numbers[count++] = number;
	}
	if (!count)
		usage_error("--%s: an empty list", option);
	return count;
}
