/*
 * analyzer/base/format.h: numbers as text shows them. Each cuts what is too long for `text`.
 */
#ifndef CUDASPY_FORMAT_H
#define CUDASPY_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Four digits; decimal times, binary bytes: "1.234 ms", "4.00 MiB", "12,345". */
void format_ns(char *text, size_t size, uint64_t ns);
void format_bytes(char *text, size_t size, uint64_t bytes);
void format_count(char *text, size_t size, uint64_t count);

/* A share: "12 %"; what is something is not called nothing, nor what is not all called all. */
void format_percent(char *text, size_t size, double part, double whole);

#endif
