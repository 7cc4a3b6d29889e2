"""Is an export what the report says? Called by test_export*.sh.

    check_export.py FORMAT FILE REPORT.json

Counts and sums of FILE are those of the report; the file keeps the rules of its format. Prints what it has counted.
"""
import collections
import json
import sys


class Wrong(Exception):
    pass


def want(what, got, wanted, slack=0):
    if abs(got - wanted) > slack:
        raise Wrong(f"{what}: {got}, in the report {wanted}")


def ns(us):
    """Times in JSON are microseconds with three decimals."""
    return round(us * 1000)


class Slice:
    """A stretch of time in a track."""

    def __init__(self, track, name, category, begin, end, arguments):
        self.track, self.name, self.category = track, name, category
        self.begin, self.end, self.arguments = begin, end, arguments


def check_nesting(slices):
    """Slices of a track lie in one another, or apart."""
    tracks = collections.defaultdict(list)
    for s in slices:
        tracks[s.track].append(s)
    for track, all_of_it in tracks.items():
        all_of_it.sort(key=lambda s: (s.begin, -s.end))
        around = []
        for s in all_of_it:
            while around and around[-1].end <= s.begin:
                around.pop()
            if around and s.end > around[-1].end:
                raise Wrong(f"track {track}: {s.name} {s.begin}-{s.end} leaves {around[-1].name} {around[-1].begin}-{around[-1].end}")
            s.depth = len(around)
            around.append(s)


def read_chrome(path):
    """All slices; metadata is there for each track."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    slices, processes, threads = [], set(), set()
    for e in events:
        if e["ph"] == "X":
            slices.append(Slice((e["pid"], e["tid"]), e["name"], e["cat"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e.get("args", {})))
        elif e["ph"] == "M" and e["name"] == "process_name":
            processes.add(e["pid"])
        elif e["ph"] == "M" and e["name"] == "thread_name":
            threads.add((e["pid"], e["tid"]))
    for s in slices:
        if s.track[0] not in processes:
            raise Wrong(f"process {s.track[0]} has no name")
    return slices


READERS = {"chrome": read_chrome}


def check_calls(slices, report):
    """Calls by function, those of the program and those inside of them: those in the report's tables, and their time."""
    calls = collections.defaultdict(lambda: [0, 0])
    for s in slices:
        if s.category in ("call", "nested call"):
            calls[s.category, s.name][0] += 1
            calls[s.category, s.name][1] += s.end - s.begin
    for table, category in (("calls", "call"), ("nested_calls", "nested call")):
        for row in report[table]:
            got = calls.pop((category, row["function"]), [0, 0])
            want(f"{category}s of {row['function']}", got[0], row["count"])
            want(f"time in {category}s of {row['function']}", got[1], row["total_ns"])
    for (category, name), got in calls.items():
        want(f"{category}s of {name}", got[0], 0)


def main():
    form, path, report_path = sys.argv[1:]
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    slices = READERS[form](path)
    check_nesting(slices)
    check_calls(slices, report)
    print(len(slices))


try:
    main()
except Wrong as wrong:
    print(wrong)
    sys.exit(1)
