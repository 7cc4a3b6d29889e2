"""Is an export what the report says? Called by test_export*.sh.

    check_export.py FORMAT FILE REPORT.json

Counts and sums of FILE are those of the report; the file keeps the rules of its format. Prints what it has counted.
"""
import collections
import html
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree


class Wrong(Exception):
    pass


def want(what, got, wanted, slack=0):
    if got != wanted if isinstance(got, tuple) else abs(got - wanted) > slack:
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
        self.depth = 0

    def finish(self, end):
        self.ns += end - self.end
        self.end = end


def check_nesting(slices):
    """Slices of a track lie in one another, or apart."""
    tracks = collections.defaultdict(list)
    for s in slices:
        tracks[s.track].append(s)
    for track, all_of_it in tracks.items():
        all_of_it.sort(key=lambda s: (s.begin, -s.end))
        around = []
        for s in all_of_it:
            while around and (around[-1].end < s.begin or around[-1].end == s.begin < s.end):
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


def packets(path):
    """The packets of a Perfetto trace as protoc decodes them by the published schema (tests/schemas): a dict each, with a
    list of values for each field."""
    schemas = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../schemas")
    with open(path, "rb") as file:
        decoded = subprocess.run(["protoc", f"-I{schemas}", "--decode=perfetto.protos.Trace", "perfetto.proto"],
                                 stdin=file, capture_output=True, check=False)
    if decoded.returncode:
        raise Wrong(f"protoc: {decoded.stderr.decode()}")
    around = []
    for line in decoded.stdout.decode().splitlines():
        words = line.split(None, 1)
        if words[0] == "}":
            inner = around.pop()
            if not around:
                yield inner
            continue
        name = words[0].rstrip(":")
        if name.isdigit():
            raise Wrong(f"field {name} is not in the schema: {line}")
        if words[1] == "{":
            around.append({})
            if len(around) > 1:
                around[-2].setdefault(name, []).append(around[-1])
            continue
        around[-1].setdefault(name, []).append(value_of(words[1]))


def value_of(text):
    if text[0] != '"':
        return int(text) if text.lstrip("-").isdigit() else text
    raw = re.sub(rb"\\([0-7]{3}|.)", unescape, text[1:-1].encode())
    return raw.decode("utf-8")  # which is what it has to be


def unescape(match):
    code = match.group(1)
    return bytes([int(code, 8)]) if len(code) == 3 else {b"n": b"\n", b"r": b"\r", b"t": b"\t"}.get(code, code)


class Perfetto:
    """One file: what it refers to has to be in it."""

    def __init__(self, timeline):
        self.t, self.interned, self.tracks, self.open = timeline, {}, {}, collections.defaultdict(list)
        self.events = []

    def take(self, packet):
        if packet["trusted_packet_sequence_id"] != [1]:
            raise Wrong(f"a packet of another sequence: {packet}")
        for table, rows in packet.get("interned_data", [{}])[0].items():
            for row in rows:
                self.interned[table, row["iid"][0]] = (row.get("name") or row.get("str"))[0]
        if "track_descriptor" in packet:
            d = packet["track_descriptor"][0]
            if d.get("parent_uuid", [None])[0] not in [None, *self.tracks]:
                raise Wrong(f"the parent of {d} is not described")
            self.tracks[d["uuid"][0]] = d
        if "track_event" in packet:
            if not packet["sequence_flags"][0] & 2:
                raise Wrong(f"an event that needs nothing: {packet}")
            self.events.append((packet["timestamp"][0], packet["track_event"][0]))

    def track(self, uuid):
        d = self.tracks[uuid]
        if "thread" in d:
            return d["thread"][0]["pid"][0], d["thread"][0]["tid"][0]
        return "row", uuid

    def name(self, uuid):
        d = self.tracks[uuid]
        return d["thread"][0]["thread_name"][0] if "thread" in d else d["name"][0]

    def arguments(self, event):
        for a in event.get("debug_annotations", []):
            key = self.interned["debug_annotation_names", a["name_iid"][0]]
            if "string_value_iid" in a:
                yield key, self.interned["debug_annotation_string_values", a["string_value_iid"][0]]
            else:
                yield key, (a.get("uint_value") or a.get("pointer_value"))[0]

    def finish(self):
        """As Perfetto reads it: by time, and what is of one time in the order of the file; a track is a stack."""
        self.events.sort(key=lambda e: e[0])
        for at, event in self.events:
            uuid = event["track_uuid"][0]
            track, kind = self.track(uuid), event["type"][0]
            self.t.tracks[track] = self.name(uuid)
            if kind == "TYPE_COUNTER":
                parent = self.tracks[uuid]["parent_uuid"][0]
                self.t.counters[parent, self.name(uuid)].append((at, event["counter_value"][0]))
                continue
            if kind == "TYPE_SLICE_END":
                if not self.open[track]:
                    raise Wrong(f"a slice ends in {track} at {at} that has not begun")
                self.open[track].pop().finish(at)
                continue
            s = Slice(track, self.interned["event_names", event["name_iid"][0]],
                      self.interned["event_categories", event["category_iids"][0]], at, at, dict(self.arguments(event)))
            for number in event.get("flow_ids", []):
                self.t.begins[number].append((track, at))
            for number in event.get("terminating_flow_ids", []):
                self.t.ends[number].append((track, at))
            if kind == "TYPE_SLICE_BEGIN":
                self.open[track].append(s)
                self.t.slices.append(s)
            elif s.category != "flow":
                self.t.marks.append(s)
        for track, slices in self.open.items():
            if slices:
                raise Wrong(f"slices in {track} do not end: {slices[0].name} at {slices[0].begin}")


def read_perfetto(path):
    t = Timeline()
    paths = [path]
    while os.path.exists(f"{path}.{len(paths) + 1}"):
        paths.append(f"{path}.{len(paths) + 1}")
    for one in paths:
        file = Perfetto(t)
        for packet in packets(one):
            file.take(packet)
        file.finish()
    return t


READERS = {"chrome": read_chrome, "perfetto": read_perfetto}


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


def check_waits(t, report, filtered):
    """Waits for locks, by lock; each lies in a call. Locks count waits, of whatever call: of a part of a recording
    those of calls that are shown are others."""
    waits = collections.defaultdict(int)
    for s in t.slices:
        if s.category == "wait" and "lock" in s.arguments:
            waits[s.arguments["lock"]] += s.end - s.begin
        if s.category == "wait" and not s.depth:
            raise Wrong(f"{s.name} at {s.begin} is in no call")
    for row in report["locks"]:
        got = waits.pop(f"{row['name']} ({row['place']})", 0)
        waited = row["waited_ns"] + row["waking_ns"]
        if not filtered:
            want(f"waits for {row['name']}", got, waited, waited * 0.02 + 2000)
    if waits and not filtered:
        raise Wrong(f"locks that are not in the report: {list(waits)}")


def around(tracks, end, slack=0):
    """The innermost slice in which an arrow's end lies, or next to which; None: none."""
    track, at = end
    best = None
    for s in tracks.get(track, []):
        if s.begin > at + slack:
            break
        if s.end + slack >= at and (best is None or s.depth >= best.depth):
            best = s
    return best


# GPU times have a clock of their own, which is known to so much; a launch may be as short.
CLOCKS_NS = 1000


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
        if source is None and target and target.category == "operation":
            source = around(tracks, begins[0], CLOCKS_NS)
        if not filtered and (source is None or target is None):
            raise Wrong(f"arrow {number} {begins}-{ends} leads from {source and source.name} to {target and target.name}")
        if source and target and source.category == "collective":
            got, wanted = [(s.category, s.name, s.arguments["number"]) for s in (target, source)]
            if got != wanted or t.tracks[target.track].split(" (")[0] != source.arguments["last_rank"]:
                raise Wrong(f"arrow {number} {ends} should end in {wanted} of {source.arguments['last_rank']}, not {got}")
        # Where in its call a thread submitted an operation is not known: its arrow begins in the middle, and so maybe in a wait.
        if target and target.category == "operation":
            if source and t.tracks[source.track] != target.arguments["thread"]:
                raise Wrong(f"arrow {number} {begins} should begin in {target.arguments['thread']}, not {t.tracks[source.track]}")
            continue
        call = source and source.category == "wait" and source.arguments.get("holder_call")
        while call and target and target.name != call and target.depth:
            target = max((s for s in tracks[target.track] if s.depth == target.depth - 1 and s.begin <= target.begin), key=lambda s: s.begin)
        if call and not filtered and target.name != call:
            raise Wrong(f"arrow {number} at {ends} should end in {call}, not {target.name}")


def check_counters(t):
    waiters = len({s.track for s in t.slices if s.category == "wait"})
    for (group, name), values in t.counters.items():
        for before, after in zip(values, values[1:]):
            if after[0] < before[0]:
                raise Wrong(f"counter {name} goes back in time: {before} {after}")
        if min(v for _, v in values) < 0 or max(v for _, v in values) > 1 << 40:
            raise Wrong(f"counter {name}: {min(values)} to {max(values)}")
        if "wait for" in name:
            want(f"{name} in the end", values[-1][1], 0)
            most = max(v for _, v in values)
            if most > waiters:
                raise Wrong(f"{name}: {most} at a time, and {waiters} threads wait at all")


def check_ranges(slices, report):
    """NVTX ranges by name; names with numbers stand for many."""
    ranges = collections.defaultdict(lambda: [0, 0])
    for s in slices:
        if s.category == "range":
            ranges[s.name][0] += 1
            ranges[s.name][1] = max(ranges[s.name][1], s.end - s.begin)
    for row in report["ranges"]:
        name = f"{row['domain']}: {row['name']}" if row.get("domain") else row["name"]
        if "#" in name:
            continue
        want(f"ranges called {name}", ranges[name][0], row["count"])


def check_findings(t, report):
    """Each is shown once, as long as its longest call, and leads to it."""
    rows = {f"#{row['rank']} {row['id']}: {row['title']}": row for row in report["findings"] if row["worst_thread"]}
    shown = [s for s in t.slices if s.category == "finding"]
    want("findings", sorted(s.name for s in shown) == sorted(rows), True)
    for s in shown:
        want(f"when {s.name} was worst", (s.begin, s.ns), (rows[s.name]["worst_at_ns"], rows[s.name]["worst_ns"]))


def check_timeline(t, report, filtered):
    check_nesting(t.slices)
    check_calls(t.slices, report)
    check_parts(t.slices, report)
    check_waits(t, report, filtered)
    check_arrows(t, filtered)
    check_counters(t)
    check_findings(t, report)
    check_ranges(t.slices, report)
    for s in t.slices:
        if s.track not in t.tracks:
            raise Wrong(f"track {s.track} has no name")
    kinds = collections.Counter(s.category for s in t.slices)
    return ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) + f", {len(t.begins)} arrows, {len(t.counters)} counters"


# ---- folded stacks ------------------------------------------------------------------------------------


def read_folded(path):
    """As flamegraph.pl reads it: frames between semicolons, and a number behind the last blank. A list of (frames, number)."""
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    if lines.pop():
        raise Wrong("the last line has no end")
    stacks = []
    for line in lines:
        match = re.fullmatch(r"(.+) ([0-9]+)", line)
        if not match or not all(match.group(1).split(";")) or re.search("[\\x00-\\x1f]", line):
            raise Wrong(f"no folded stack: {line!r}")
        stacks.append((match.group(1).split(";"), int(match.group(2))))
    if len({tuple(frames) for frames, _ in stacks}) != len(stacks):
        raise Wrong("a stack comes twice")
    return stacks


def draw(stacks, path):
    """A flame graph: a box for each frame over its callers', as wide as what is in it. Returns the boxes."""
    tree = {}
    for frames, ns in stacks:
        for i in range(len(frames) + 1):
            tree[tuple(frames[:i])] = tree.get(tuple(frames[:i]), 0) + ns
    boxes, at = {}, collections.defaultdict(int)
    for frames in sorted(tree):
        x = boxes[frames[:-1]][0] + at[frames[:-1]] if frames else 0
        at[frames[:-1]] += tree[frames] if frames else 0
        boxes[frames] = (x, len(frames), tree[frames])
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="600">\n')
        for frames, (x, y, ns) in boxes.items():
            scale = 1200 / max(1, tree.get((), 1))
            title = html.escape(frames[-1] if frames else "all")
            file.write(f'<rect x="{x * scale:.3f}" y="{580 - 16 * y}" width="{ns * scale:.3f}" height="15"><title>{title}</title></rect>\n')
        file.write("</svg>\n")
    return boxes


def check_folded(path, report, by):
    stacks = read_folded(path)
    want("lost time of all stacks", sum(ns for _, ns in stacks), report["waits"]["lost_ns"])
    functions, threads = collections.Counter(), collections.Counter()
    for frames, ns in stacks:
        functions[frames[-1] if by == "cause" else frames[-2]] += ns
        threads[frames[2 if by == "cause" else 1]] += ns
    for row in report["function_accounts"]:
        want(f"lost in {row['function']}", functions.pop(row["function"], 0), row["lost_ns"])
    want("lost in other functions", sum(functions.values()), 0)
    lost = collections.Counter()
    for row in report["accounts"]:
        lost[row["thread"]] += row["lost_ns"]
    for name, ns in threads.items():
        number = int(re.search(r"(\d+)\)?$", name).group(1))
        want(f"lost by {name}", ns, lost[number], 0 if list(map(lambda n: n.endswith(f"{number})"), threads)).count(True) == 1 else lost[number])
    boxes = draw(stacks, path + ".svg")
    drawn = xml.etree.ElementTree.parse(path + ".svg").getroot()
    want("boxes in the flame graph", len(drawn), len(boxes))
    for frames, (x, _, ns) in boxes.items():
        out_x, _, out_ns = boxes[frames[:-1]]
        if x < out_x or x + ns > out_x + out_ns:
            raise Wrong(f"{frames} is not over its caller")
    return f"{len(stacks)} stacks"


def main():
    form, path, report_path = sys.argv[1:4]
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    if form.startswith("folded"):
        print(check_folded(path, report, form.removeprefix("folded --by=")))
    else:
        print(check_timeline(READERS[form](path), report, bool(report.get("only"))))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        print(wrong)
        sys.exit(1)
