/*
 * shim/record/range_names.h: what NVTX calls things: domains, and names of ranges and marks, get numbers.
 * Called on the application's threads, in any place of the program: takes no lock where names are
 * looked up, and allocates nothing.
 */
#ifndef CUDASPY_SHIM_NVTX_NAMES_H
#define CUDASPY_SHIM_NVTX_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define SPY_RANGE_NAMES 8192 /* names, with their domains, that are told apart; 0 is none of them */
#define SPY_RANGE_TEXT 256 /* bytes of a name that are kept, with the NUL */
#define SPY_DOMAINS 256 /* domains; the last one stands for all others, 0 is the default one */
#define SPY_DOMAIN_TEXT 64

/* So many names that differ in their numbers only are told apart; all others have one together. */
#define SPY_RANGE_FAMILY 64

/* A domain's name, never NULL. */
const char *spy_domain_text(uint16_t domain);

/* The domain of that name. */
uint16_t spy_domain_number(const char *name);
uint16_t spy_domain_number_wide(const wchar_t *name);

/*
 * A number for a name in a domain; the same for the same text. 0: there are too many names. Names
 * of one text but for numbers in decimal (and 0x…) are a family: those beyond the first
 * SPY_RANGE_FAMILY share a number, of a text with # for the numbers.
 */
uint32_t spy_range_number(uint16_t domain, const char *name);
uint32_t spy_range_number_wide(uint16_t domain, const wchar_t *name);

/* Text of a number; NULL: another thread is just adding it, or there is none. */
const char *spy_range_text(uint32_t number, uint16_t *domain, bool *folded);

/* A wide text as UTF-8, cut off where it does not fit. */
void spy_utf8_from_wide(char *text, size_t size, const wchar_t *wide);

/* A text with # for each number in it; true if there is one. */
bool spy_range_fold(char *folded, size_t size, const char *text);

/*
 * Handles that the program is given. Where no other tool answers they are addresses of ours; those
 * of another tool are remembered. NULL is the default domain, and no string.
 */
void *spy_domain_handle(uint16_t domain);
uint16_t spy_domain_of(const void *handle);
void *spy_string_handle(uint32_t number);
uint32_t spy_string_of(const void *handle);
void spy_domain_learn(const void *handle, uint16_t domain);
void spy_string_learn(const void *handle, uint32_t number);

/* For spy_board: names so far, and how often there was no room for one. */
uint32_t spy_range_names(void);
uint32_t spy_range_unnamed(void);

/* In a forked child: other threads do not exist there. */
void spy_names_forked(void);

#endif
