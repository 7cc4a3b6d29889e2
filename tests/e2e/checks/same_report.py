#!/usr/bin/python3
"""tests/e2e/checks/same_report.py A B [ids=N] [hosts] [later=SECONDS]: do two reports in JSON say the same? Says what differs; status 1.

Rows may come in another order, and of findings the ranks. With ids, B is of traces that rewrite_trace.py gave other
numbers of processes and threads; with hosts, other hosts; with later, it began so much later.
"""
import json
import re
import sys

IDS = {"pid", "ppid", "tid", "thread", "worst_thread", "share_thread", "waiter", "holder", "root", "other", "starved", "server", "feeder_thread"}


def collect(value, ids):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in IDS and isinstance(inner, int) and inner:
                ids.add(inner)
            collect(inner, ids)
    elif isinstance(value, list):
        for inner in value:
            collect(inner, ids)


def change(number, by):
    return number + by if by > 0 else -by - number


def back(value, old, key=None):
    """With the numbers of A."""
    if isinstance(value, dict):
        return {inner: back(one, old, inner) for inner, one in value.items()}
    if isinstance(value, list):
        return [back(one, old) for one in value]
    if isinstance(value, int) and key in IDS:
        return old.get(value, value)
    if isinstance(value, str):
        return re.sub(r"\d+", lambda m: str(old.get(int(m[0]), m[0])), value)
    return value


def without_hosts(value):
    if isinstance(value, dict):
        return {key: without_hosts(one) for key, one in value.items() if key not in ("host", "boot")}
    return [without_hosts(one) for one in value] if isinstance(value, list) else value


def canonical(report):
    for row in report.get("findings", []):
        del row["rank"]
    return {key: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) if isinstance(rows, list) else rows
            for key, rows in report.items()}


def main():
    with open(sys.argv[1]) as file:
        a = json.load(file)
    with open(sys.argv[2]) as file:
        b = json.load(file)
    for word in sys.argv[3:]:
        if word == "hosts":
            a, b = without_hosts(a), without_hosts(b)
            continue
        by = int(word.split("=")[1])
        if word.startswith("later="):
            a["summary"]["began_unix_s"] += by if a["summary"]["began_unix_s"] else 0  # unknown stays so
            continue
        # The one that stands for all; of those that began at the same time, the one with the lowest number.
        for key in "program", "command", "began_unix_s":
            del a["summary"][key], b["summary"][key]
        ids = set()
        collect(a, ids)
        b = back(b, {change(number, by): number for number in ids})
    a, b = canonical(a), canonical(b)
    status = 0
    for key in sorted(set(a) | set(b)):
        if a.get(key) == b.get(key):
            continue
        status = 1
        print("%s:" % key)
        rows, others = ([x[key]] if isinstance(x.get(key), dict) else x.get(key) or [] for x in (a, b))
        for sign, these, those in ("-", rows, others), ("+", others, rows):
            for row in [row for row in these if row not in those][:3]:
                print("  %s %s" % (sign, json.dumps(row, sort_keys=True)[:1500]))
    return status


sys.exit(main())
