#!/usr/bin/python3
"""tests/e2e/checks/same_window.py FULL WINDOW LATE_MS ROUNDS: do two reports in JSON say the same of some rounds of a program? Says what
differs; status 1.

FULL is of a recording from begin to end, cut to those rounds by --from and --to; WINDOW of another run that recorded only them.
The runs do the same calls, so all counts have to be equal, and all rows there. Times need not: threads begin a moment later than
they might. Who made the recordings has made sure that this is less than LATE_MS in each round. So a time of one call may differ by
that, a sum by that in each of ROUNDS.

What is compared in no case, and why, are the tables here.
"""
import json
import re
import sys

# Of the whole run in both, by what filters are (docs/USAGE.md, "A part of a recording"): the runs are of different length.
WHOLE_RUN = {"only", "expectations"}
# Getters are counted, and when is unknown: a report of a part has none.
COUNTED = {"counted"}
# What tells two runs apart, and the two ways of asking.
OF_THE_RUN = {"pid", "ppid", "process", "program", "began_unix_s", "records", "windows", "address", "trace",
              "recorded_ns", "recorded"}
# How many others of the worst calls are like that one: of those that are shown. What times of single calls decide: the
# order of findings, and which of them are notes or minor.
BY_TIMES = {"alike", "rank", "severity", "problems", "notes", "minor", "found"}
# Moments: since the begin of a run.
MOMENTS = re.compile(r"(^|_)(at|since|first|last|begin|end|phase_begin|phase_end)_ns$|^(from|to)_ns$")
THREADS = {"tid", "thread", "worst_thread", "share_thread", "waiter", "holder", "root", "other", "starved", "feeder_thread"}
# Of the time of the whole run, whose length is another one.
SHARES_OF_RUN = {"run_ns", "duration_ns", "idle_ppm_of_run"}
# What rounds.c plans that costs little or nothing. Any other finding that costs little is of a call that just waited, or a CPU that
# was late, in one of the two runs.
PLANNED = {"hidden-sync", "ignored-error", "redundant-sync"}
OF_THE_MACHINE = {"oversubscribed-host"}
# How long ranges were, and how many, is of the whole run.
WHOLE_RANGES = {"count", "ns", "total_ns", "median_ns", "max_ns", "p99_ns", "min_ns", "own_ns", "longest_ns"}


class Comparison:
    def __init__(self, round_ns, rounds):
        self.call_ns, self.sum_ns = round_ns, round_ns * rounds
        self.faults = []
        self.compared = 0

    def fault(self, path, a, b):
        self.faults.append("%s: %.200s, in the window %.200s" % (path, a, b))

    def text(self, value):
        """Without times and shares, which stand in sentences, and without numbers of threads and processes."""
        value = re.sub(r"\b(\d[\d,.]*) (ns|us|ms|s|thread-\w+)\b", "TIME", value)
        value = re.sub(r"(under |over )?\d[\d.]* %", "SHARE", value)
        value = re.sub(r"\b(thread|rounds)([ .])\d+", r"\1\2N", value)
        return re.sub(r"; (blocked by earlier work|staged, not blocked|for most of that the thread would)[^;]*", "", value)

    def matters(self, row):
        """Is it certain that a row is in a list of the largest, or of those that are large enough?"""
        if not isinstance(row, dict):
            return True
        times = [v for k, v in row.items() if k.endswith("ns") and isinstance(v, int) and not MOMENTS.search(k)]
        return not times or max(times) > self.sum_ns / 2

    def identity(self, row):
        """Of a row: what it is of."""
        if not isinstance(row, dict):
            return json.dumps(row)
        return json.dumps({k: self.text(v) for k, v in sorted(row.items())
                           if isinstance(v, str) and k in ("id", "function", "where", "what_of", "cause", "site", "device", "layer",
                                                           "kind", "name", "holder_function", "root_function", "lock", "range")} |
                          {k: v for k, v in row.items() if k in ("device", "line") and isinstance(v, int)})

    def by_chance(self, row):
        """Does a finding cost so little that a moment decides whether it is there, and what it says of a call that just waited?"""
        return row["id"] in OF_THE_MACHINE or (row["id"] not in PLANNED and (row["total_ns"] or 0) <= self.sum_ns / 2)

    def rows(self, path, a, b):
        all_rows = path.split(".")[-1] in ("calls", "findings", "threads", "devices", "gpus", "processes", "copies", "memory", "ranges")
        a, b = ([row for row in rows if all_rows or self.matters(row)] for rows in (a, b))
        if path == "findings":
            a, b = ([row for row in rows if not self.by_chance(row)] for rows in (a, b))
        a, b = (sorted(rows, key=self.identity) for rows in (a, b))
        if len(a) != len(b):
            self.fault(path, [self.identity(row) for row in a], [self.identity(row) for row in b])
            return
        for i, (x, y) in enumerate(zip(a, b)):
            if self.identity(x) != self.identity(y):
                self.fault("%s[%d]" % (path, i), self.identity(x), self.identity(y))
            else:
                self.values("%s[%s]" % (path, self.identity(x)), path, x, y)

    def values(self, path, table, a, b):
        for key in sorted(set(a) | set(b)):
            if key in BY_TIMES | COUNTED | OF_THE_RUN | THREADS | SHARES_OF_RUN or MOMENTS.search(key) or \
                    (table == "ranges" and key in WHOLE_RANGES):
                continue
            if key not in a or key not in b:
                self.fault(path + "." + key, a.get(key, "(none)"), b.get(key, "(none)"))
            else:
                self.value(path + "." + key, key, a[key], b[key])

    def value(self, path, key, a, b):
        self.compared += 1
        if isinstance(a, dict) and isinstance(b, dict):
            self.values(path, key, a, b)
        elif isinstance(a, list) and isinstance(b, list):
            if key not in ("stack", "feeder_causes", "worst"):
                self.rows(path, a, b)
        elif isinstance(a, str) and isinstance(b, str):
            if self.text(a) != self.text(b):
                self.fault(path, a, b)
        elif key.endswith("ns") and isinstance(a, (int, type(None))) and isinstance(b, (int, type(None))):
            most = self.call_ns if re.search(r"max|median|p99|worst|longest", key) else self.sum_ns
            # What is unknown of the one is little of the other.
            if abs((a or 0) - (b or 0)) > most:
                self.fault(path, a, b)
        elif key.endswith("_ppm"):
            if abs(a - b) > 250000:
                self.fault(path, a, b)
        elif a != b:
            self.fault(path, a, b)

    def reports(self, a, b):
        for key in sorted(set(a) | set(b)):
            if key in WHOLE_RUN | COUNTED:
                continue
            if key not in a or key not in b:
                self.fault(key, key in a, key in b)
            else:
                self.value(key, key, a[key], b[key])


def main():
    with open(sys.argv[1]) as full, open(sys.argv[2]) as window:
        c = Comparison(int(sys.argv[3]) * 1000000, int(sys.argv[4]))
        c.reports(json.load(full), json.load(window))
    for fault in c.faults:
        print(fault)
    print("%d values compared" % c.compared)
    sys.exit(bool(c.faults) or c.compared < 300)


main()
