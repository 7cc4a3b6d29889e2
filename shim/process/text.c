/* shim/process/text.c: see text.h. Runs in slow paths only, on the application's thread. */
#include "process/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "process/heap.h"

#define ROOM_FIRST 4096

/* Room for so many more characters and a NUL. */
static bool make_room(struct spy_text *text, size_t more)
{
	size_t room = text->room ? text->room : ROOM_FIRST;
	char *chars;

	if (text->failed)
		return false;
	while (room <= text->length + more)
		room *= 2;
	if (room == text->room)
		return true;
	chars = spy_heap_take(room);
	if (!chars) {
		text->failed = true;
		return false;
	}
	if (text->chars)
		memcpy(chars, text->chars, text->length);
	spy_heap_give(text->chars, text->room);
	text->chars = chars;
	text->room = room;
	return true;
}

void spy_text_add(struct spy_text *text, const char *chars, size_t length)
{
	if (!make_room(text, length))
		return;
	memcpy(text->chars + text->length, chars, length);
	text->length += length;
	text->chars[text->length] = '\0';
}

void spy_text_print(struct spy_text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0 || !make_room(text, (size_t)length))
		return;
	va_start(arguments, format);
	vsnprintf(text->chars + text->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

void spy_text_free(struct spy_text *text)
{
	spy_heap_give(text->chars, text->room);
	*text = (struct spy_text){.length = 0};
}
