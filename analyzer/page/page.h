/*
 * analyzer/page/page.h: the page of an HTML report, which the build puts together from this folder (put_together). The
 * renderer of HTML writes it with three lines replaced by base64: those that are `@REPORT@`, `@TIMELINE@` and `@ITEMS@`
 * (docs/HTML_REPORT.md). Each of them is there once, alone in its line, in this order.
 */
#ifndef CUDASPY_PAGE_H
#define CUDASPY_PAGE_H

/* No NUL ends it: it is what lies between the two. */
extern const char page_text[], page_text_end[];

#endif
