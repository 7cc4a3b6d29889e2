/*
 * analyzer/live_view/prometheus.h: the picture of running programs as metrics, in the text format that Prometheus' node_exporter
 * takes from files (its textfile collector).
 */
#ifndef CUDASPY_LIVE_PROMETHEUS_H
#define CUDASPY_LIVE_PROMETHEUS_H

#include "live/verdict.h"

/* Writes the file anew: complete, or not at all. 0, or -errno after a warning. */
int prometheus_write(const char *path, const struct live_words *w, const struct verdicts *v);

#endif
