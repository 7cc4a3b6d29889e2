/*
 * testapps/list.h: options whose value is a list: names or numbers with commas between them.
 */
#ifndef TESTAPPS_LIST_H
#define TESTAPPS_LIST_H

#include <stdbool.h>

#define LIST_ITEM_MAX 32 /* with the final zero; a longer item is cut off and so matches no name */

/* Takes the first item off the list; false if there is none left. */
bool list_next(const char **list, char item[LIST_ITEM_MAX]);

/* Whether the name is in the list, or the list is "all". */
bool list_has(const char *list, const char *name);

/* What is in the list and not there is a usage error of the option; so is an empty list. */
void list_check(const char *option, const char *list, bool (*there)(const char *name));

/* The numbers of the list, at most max of them, each from 1 to most; how many. What is none of these
 * is a usage error of the option. */
int list_numbers(const char *option, const char *list, long *numbers, int max, long most);

#endif
