/*
 * analyzer/render/json.h: what the formats that are JSON have in common.
 */
#ifndef CUDASPY_RENDER_JSON_H
#define CUDASPY_RENDER_JSON_H

#include <jansson.h>
#include "base/report.h"

/* Texts from a traced process may be anything; JSON is UTF-8: what is none becomes '?'. */
json_t *render_json_text(const char *text);

/* A cell's text or number, null if it is not known; a table's rows as an array. */
json_t *render_json_cell(const struct table *t, size_t row, const struct column *column);

/* The whole report as one object, without its timeline. The caller decrefs. */
json_t *render_json_report(const struct report *report);

#endif
