#!/usr/bin/env python3
"""tests/e2e/checks/check_prom.py FILE: reads a file in Prometheus' text format strictly (prometheus.io, Exposition formats): each
metric has HELP and TYPE before its samples, samples of a metric lie together, none is there twice, names, labels, escapes
and numbers are right. Prints METRIC LABELS VALUE, one a line, labels sorted, separated by tabs."""
import re
import sys

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')


def wrong(number, text):
    sys.exit("check_prom: line %d: %s" % (number, text))


def sample(number, line):
    name = NAME.match(line)
    if not name:
        wrong(number, "no name: " + line)
    rest, labels = line[name.end():], {}
    if rest.startswith("{"):
        rest = rest[1:]
        while not rest.startswith("}"):
            label = LABEL.match(rest)
            if not label or label.group(1) in labels:
                wrong(number, "labels: " + line)
            labels[label.group(1)] = label.group(2)
            rest = rest[label.end():]
            if rest.startswith(","):
                rest = rest[1:]
            elif not rest.startswith("}"):
                wrong(number, "labels: " + line)
        rest = rest[1:]
    if not re.fullmatch(r" [-+]?(\d+(\.\d*)?([eE][-+]?\d+)?|Inf|NaN)", rest):
        wrong(number, "value: " + line)
    return name.group(0), labels, rest[1:]


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        text = file.read()
    if not text.endswith("\n") or "\r" in text:
        sys.exit("check_prom: the last line has no end, or lines have carriage returns")
    types, helps, seen, current, done = {}, {}, set(), None, set()
    for number, line in enumerate(text.split("\n")[:-1], 1):
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            table = {"HELP": helps, "TYPE": types}[word]
            if name in table or name in done or not NAME.fullmatch(name):
                wrong(number, "twice, or behind its samples: " + line)
            if word == "TYPE" and rest not in ("counter", "gauge"):
                wrong(number, "type: " + line)
            table[name] = rest
            continue
        name, labels, value = sample(number, line)
        if name not in types or name not in helps:
            wrong(number, "no HELP and TYPE before it: " + line)
        if name != current and name in done:
            wrong(number, "not beside the others of its name: " + line)
        if types[name] == "counter" and (not name.endswith("_total") or float(value) < 0):
            wrong(number, "no counter: " + line)
        current = name
        done.add(name)
        key = (name, tuple(sorted(labels.items())))
        if key in seen:
            wrong(number, "twice: " + line)
        seen.add(key)
        print(name, ",".join("%s=%s" % pair for pair in key[1]), value, sep="\t")
    if not done:
        sys.exit("check_prom: no samples")


main()
