/*
 * analyzer/export/export.c: the table of formats. Called by `cudaspy export`.
 */
#include "export.h"

const struct export_format export_formats[] = {
#define ROW(name, named, begin, listener, end, help) {#name, named, begin, listener, end},
	EXPORT_FORMATS(ROW)
#undef ROW
};
const size_t n_export_formats = ARRAY_SIZE(export_formats);

const struct export_format *export_find(const char *name)
{
	for (size_t i = 0; name && i < n_export_formats; i++)
		if (!strcmp(export_formats[i].name, name))
			return &export_formats[i];
	if (name)
		warn("export: no format '%s' (" EXPORT_NAMES ")", name);
	else
		warn("export: --format is missing (" EXPORT_NAMES ")");
	return NULL;
}
