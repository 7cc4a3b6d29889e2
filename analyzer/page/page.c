/*
 * analyzer/page/page.c: the page of an HTML report as the build has put it together, in the command. Used by the renderer
 * of HTML.
 */
#include "page/page.h"

__asm__(".pushsection .rodata\n"
	"	.globl page_text, page_text_end\n"
	"page_text:\n"
	".incbin \"" CUDASPY_PAGE "\"\n"
	"page_text_end:\n"
	".popsection\n");
