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
        self.ns = end - begin + arguments.get("before_recording_ns", 0)


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


class Timeline:
    """What a timeline has: slices, arrows (two ends each: track and time), counters, names of tracks."""

    def __init__(self):
        self.slices, self.marks, self.counters = [], [], collections.defaultdict(list)
        self.begins, self.ends = collections.defaultdict(list), collections.defaultdict(list)
        self.tracks = {}


def read_chrome(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    t = Timeline()
    processes = {}
    for e in events:
        track = e["pid"], e["tid"]
        if e["ph"] == "X":
            t.slices.append(Slice(track, e["name"], e["cat"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e.get("args", {})))
        elif e["ph"] == "i":
            t.marks.append(Slice(track, e["name"], e["cat"], ns(e["ts"]), ns(e["ts"]), e.get("args", {})))
        elif e["ph"] in "sf":
            (t.begins if e["ph"] == "s" else t.ends)[e["id"]].append((track, ns(e["ts"])))
        elif e["ph"] == "C":
            t.counters[e["pid"], e["name"]].append((ns(e["ts"]), e["args"]["value"]))
        elif e["ph"] == "M" and e["name"] == "process_name":
            processes[e["pid"]] = e["args"]["name"]
        elif e["ph"] == "M" and e["name"] == "thread_name":
            t.tracks[track] = e["args"]["name"]
        elif e["ph"] != "M":
            raise Wrong(f"what is this: {e}")
    for track in t.tracks:
        if track[0] not in processes:
            raise Wrong(f"process {track[0]} has no name")
    return t


READERS = {"chrome": read_chrome}


def check_calls(slices, report):
    """Calls by function, those of the program and those inside of them: those in the report's tables, and their time."""
    calls = collections.defaultdict(lambda: [0, 0])
    for s in slices:
        if s.category in ("call", "nested call"):
            calls[s.category, s.name][0] += 1
            calls[s.category, s.name][1] += s.ns
    for table, category in (("calls", "call"), ("nested_calls", "nested call")):
        for row in report[table]:
            got = calls.pop((category, row["function"]), [0, 0])
            want(f"{category}s of {row['function']}", got[0], row["count"])
            want(f"time in {category}s of {row['function']}", got[1], row["total_ns"])
    for (category, name), got in calls.items():
        want(f"{category}s of {name}", got[0], 0)


BUCKETS = "own loading gpu_intended gpu_hidden lock ioctl queue mps not_running unexplained".split()


def check_parts(slices, report):
    """What calls' time went into: the report's sums, and all of each call."""
    sums = collections.Counter()
    for s in slices:
        if s.category != "call":
            continue
        parts = {b: s.arguments.get(f"{b}_ns", 0) for b in BUCKETS}
        if not any(parts.values()):
            parts["own"] = s.ns
        want(f"parts of {s.name} at {s.begin}", sum(parts.values()), s.ns)
        sums.update(parts)
    for b in BUCKETS:
        want(f"{b} of all calls", sums[b], report["waits"][f"{b}_ns"])


def check_waits(t, report):
    """Waits for locks, by lock; each lies in a call, and leads to its holder's."""
    waits = collections.defaultdict(int)
    for s in t.slices:
        if s.category == "wait" and "lock" in s.arguments:
            waits[s.arguments["lock"]] += s.end - s.begin
        if s.category == "wait" and not s.depth:
            raise Wrong(f"{s.name} at {s.begin} is in no call")
    for row in report["locks"]:
        got = waits.pop(f"{row['name']} ({row['place']})", 0)
        waited = row["waited_ns"] + row["waking_ns"]
        want(f"waits for {row['name']}", got, waited, waited * 0.02 + 2000)
    if waits:
        raise Wrong(f"locks that are not in the report: {list(waits)}")


def around(tracks, end):
    """The innermost slice in which an arrow's end lies; None: none."""
    track, at = end
    best = None
    for s in tracks.get(track, []):
        if s.begin > at:
            break
        if s.end >= at and (best is None or s.depth >= best.depth):
            best = s
    return best


def check_arrows(t, filtered):
    """Each arrow begins in a slice and ends in another one. Of a part of a recording, the holder's call may be left out."""
    tracks = collections.defaultdict(list)
    for s in t.slices:
        tracks[s.track].append(s)
    if set(t.begins) != set(t.ends):
        raise Wrong(f"arrows with one end: {sorted(set(t.begins) ^ set(t.ends))[:5]}")
    for number in sorted(t.begins)[:2000]:
        begins, ends = t.begins[number], t.ends[number]
        if len(begins) != 1 or len(ends) != 1:
            raise Wrong(f"arrow {number} has ends {begins} {ends}")
        if begins[0][1] > ends[0][1]:
            raise Wrong(f"arrow {number} leads back: {begins} {ends}")
        source, target = around(tracks, begins[0]), around(tracks, ends[0])
        if not filtered and (source is None or target is None):
            raise Wrong(f"arrow {number} {begins}-{ends} leads from {source and source.name} to {target and target.name}")
        call = source and source.category == "wait" and source.arguments.get("holder_call")
        while call and target and target.name != call and target.depth:
            target = max((s for s in tracks[target.track] if s.depth == target.depth - 1 and s.begin <= target.begin), key=lambda s: s.begin)
        if call and not filtered and target.name != call:
            raise Wrong(f"arrow {number} at {ends} should end in {call}, not {target.name}")


def check_counters(t):
    for (group, name), values in t.counters.items():
        for before, after in zip(values, values[1:]):
            if after[0] < before[0]:
                raise Wrong(f"counter {name} goes back in time: {before} {after}")
        if min(v for _, v in values) < 0 or max(v for _, v in values) > 1 << 40:
            raise Wrong(f"counter {name}: {min(values)} to {max(values)}")
        if "wait for" in name:
            want(f"{name} in the end", values[-1][1], 0)


def check_ranges(slices, report):
    """NVTX ranges by name; names with numbers stand for many."""
    ranges = collections.defaultdict(lambda: [0, 0])
    for s in slices:
        if s.category == "range":
            ranges[s.name][0] += 1
            ranges[s.name][1] = max(ranges[s.name][1], s.end - s.begin)
    for row in report["ranges"]:
        name = f"{row['domain']}: {row['range']}" if row.get("domain") else row["range"]
        if "#" in name:
            continue
        want(f"ranges called {name}", ranges[name][0], row["count"])


def check_timeline(t, report, filtered):
    check_nesting(t.slices)
    check_calls(t.slices, report)
    check_parts(t.slices, report)
    check_waits(t, report)
    check_arrows(t, filtered)
    check_counters(t)
    check_ranges(t.slices, report)
    for s in t.slices:
        if s.track not in t.tracks:
            raise Wrong(f"track {s.track} has no name")
    kinds = collections.Counter(s.category for s in t.slices)
    return ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) + f", {len(t.begins)} arrows, {len(t.counters)} counters"


def main():
    form, path, report_path = sys.argv[1:4]
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    print(check_timeline(READERS[form](path), report, bool(report.get("only"))))


try:
    main()
except Wrong as wrong:
    print(wrong)
    sys.exit(1)
