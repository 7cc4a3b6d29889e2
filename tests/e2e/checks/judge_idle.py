"""tests/e2e/checks/judge_idle.py TRUTH NOTES REPORT DUMP TIMELINE [--table | --as-report]: is what a report says of idle GPUs right?

TRUTH is the simulator's folder (gpu, truth, waits), NOTES what feeders.c wrote, REPORT a report as JSON, DUMP what
`cudaspy dump` says of the same trace, TIMELINE the same trace as `cudaspy export --format=chrome`. Of each GPU and its process's working phase: when nothing ran there, and what the
thread that submitted the operation that ended it did meanwhile: from the notes between calls, from the simulator's
truth inside. Then

  - the causes of a GPU add up to its idle time;
  - bounds: the idle time is no more than the true one, and the most it says no less, however late threads got a CPU;
    each interval of the timeline that is certainly idle was idle for so long, and they add up to what the report says;
    of what is charged, the share is printed that is there in truth under that cause in what calls could prove at best;
  - exact: busy and idle time are the true ones; the share of the idle time that is charged to its true cause is printed.

A CPU that is used and one that is waited for are one cause here, as a busy machine makes one of the other. What it takes to
wake a thread whose GPU has finished may be charged to the call, to the wait or to the CPU that it waits for; so may a call
whose own work lasts longer than any here does, for its thread had lost its CPU. Prints
a line for each GPU: its number, how the report knows, true idle time, the reported one, the most that it may be (all us), the
charged time in us, and of that what is right. Exits with 1 if a bound is broken or a sum is wrong; what is
charged to the right cause is for the caller to judge, who sums lines of several runs. --as-report: prints the truth as an
exact report would say it, to try the judge."""

import bisect
import glob
import json
import os
import re
import sys
from collections import defaultdict

# What clocks may differ by: the trace's, once for each end of a phase, and 1 in a million of the time between.
GRAIN_NS = 2000
SUBMITTING = {"SUBMIT", "LAUNCH", "COPY_ASYNC", "COPY_BATCH", "COPY_SYNC", "PEER", "MEMSET_SYNC", "ALLOC_POOL"}
WAITING = re.compile("Synchronize|Free|Unregister")
HELD_UP = "held up"
MAY_BE_HELD_UP = ("cuda-wait", "cuda-call", "launch", "cpu", "unexplained")
OWN_MOST_NS = 1000000
SAME = {"python": "cpu", "not-running": "cpu"}


def rows(path):
    with open(path, encoding="utf-8") as file:
        names = file.readline().rstrip("\n").lstrip("#").split("\t")
        for line in file:
            yield dict(zip(names, line.rstrip("\n").split("\t")))


def one(folder, what):
    found = glob.glob(os.path.join(folder, what + ".*.tsv"))
    if len(found) != 1:
        sys.exit(f"judge_idle: {what} in {folder}: {found}")
    return found[0]


def submitting_functions():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../include/cudaspy/entrypoints.def")
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^ENTRY\((\w+), *\w+, *\w+, *(\w+)", file.read(), re.M)
    return {name for name, contract in found if contract in SUBMITTING}


class Thread:
    """What a thread did, as segments [begin, end, cause], that do not overlap, in order."""

    def __init__(self):
        self.calls, self.waits, self.notes, self.segments, self.begins = [], [], [], [], []

    def settle(self, submitting, ends):
        self.waits.sort()
        for i, (begin, end, cause) in enumerate(self.waits):
            last = bisect.bisect_right(ends, end)
            if cause == "cuda-wait" and last and begin < end:
                finished = min(max(ends[last - 1], begin), end)
                self.waits[i] = (begin, finished, cause)
                self.waits.append((finished, end, HELD_UP))
        self.waits.sort()
        for begin, end, function in self.calls:
            rest = "launch" if function in submitting else "cuda-call"
            at, first = begin, len(self.segments)
            for wait_begin, wait_end, cause in self.waits[bisect.bisect_left(self.waits, (begin,)) :]:
                if wait_begin == wait_end:
                    continue
                if wait_begin >= end:
                    break
                if wait_end <= at:
                    continue
                if wait_begin > at:
                    self.segments.append((at, wait_begin, rest))
                self.segments.append((max(at, wait_begin), wait_end, cause))
                at = wait_end
            if at < end:
                self.segments.append((at, end, rest))
            for i, (s_begin, s_end, cause) in enumerate(self.segments[first:], first):
                if cause == rest and s_end - s_begin > OWN_MOST_NS:
                    self.segments[i] = (s_begin, s_end, HELD_UP)
        self.segments += self.notes
        self.segments.sort()
        self.begins = [s[0] for s in self.segments]

    def between(self, begin, end):
        at = begin
        first = max(bisect.bisect_right(self.begins, begin) - 1, 0)
        for s_begin, s_end, cause in self.segments[first:]:
            if s_begin >= end:
                break
            if s_end <= at:
                continue
            if s_begin > at:
                yield "cpu", s_begin - at
            at = max(at, s_begin)
            yield cause, min(s_end, end) - at
            at = min(s_end, end)
        if at < end:
            yield "cpu", end - at


def threads_of(folder, notes, ends):
    threads = defaultdict(Thread)
    causes = {"lock": "cuda-lock", "gpu": "cuda-wait", "ioctl": "kernel-module", "mps": "cuda-wait"}
    for r in rows(one(folder, "truth")):
        if r["depth"] == "0":
            threads[int(r["tid"])].calls.append((int(r["begin_ns"]), int(r["end_ns"]), r["function"]))
    for r in rows(one(folder, "waits")):
        threads[int(r["tid"])].waits.append((int(r["begin_ns"]), int(r["end_ns"]), causes[r["kind"]]))
    for r in rows(notes):
        threads[int(r["tid"])].notes.append((int(r["begin_ns"]), int(r["end_ns"]), r["cause"]))
    submitting = submitting_functions()
    for thread in threads.values():
        thread.settle(submitting, ends)
    return threads


def clock_of(dump):
    """From ns since the trace began to CLOCK_MONOTONIC: by the first and the last clock record."""
    found = []
    with open(dump, encoding="utf-8") as file:
        for line in file:
            m = re.match(r"([0-9]+)\.([0-9]{9}) .* clock monotonic_ns=([0-9]+)", line)
            if m:
                found.append((int(m[1]) * 10**9 + int(m[2]), int(m[3])))
    found.sort()
    if len(found) < 2 or found[0][0] == found[-1][0]:
        sys.exit("judge_idle: the trace has no clock")
    (a, a_ns), (b, b_ns) = found[0], found[-1]
    return lambda ns: a_ns + (ns - a) * (b_ns - a_ns) // (b - a)


def true_idle(ops, threads, begin, end, proofs):
    """(idle, by cause, of a GPU from begin to end; and of that what can be proven by calls: from the end of one that
    waited to the begin of the one that submits). Behind its last operation: None, nobody can say."""
    causes, provable = defaultdict(int), defaultdict(int)
    at = begin
    for op in sorted(ops, key=lambda op: op["begin_ns"]):
        a, b = at, min(op["begin_ns"], end)
        at = max(at, op["end_ns"])
        if b <= a:
            continue
        submit = min(max(op["submit_ns"], a), b)
        for cause, ns in threads[op["tid"]].between(a, submit):
            causes[SAME.get(cause, cause)] += ns
        causes["dependency"] += b - submit
        proven = bisect.bisect_left(proofs, a)
        if proven < len(proofs) and proofs[proven] < op["call_begin_ns"]:
            for cause, ns in threads[op["tid"]].between(proofs[proven], min(op["call_begin_ns"], b)):
                provable[SAME.get(cause, cause)] += ns
    if at < end:
        causes[None] += end - at
        provable[None] += end - at
    return sum(causes.values()), causes, provable


def intervals_of(timeline):
    """By GPU: (begin, end, idle ns) of what the timeline calls certainly idle, as ns since the trace began."""
    with open(timeline, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    tracks = {e["tid"] for e in events if e["ph"] == "M" and e["args"].get("name") == "certainly idle"}
    found = defaultdict(list)
    for e in events:
        if e.get("cat") == "idle" and e["tid"] in tracks:
            device = int(re.match("GPU ([0-9]+)", names[e["pid"]])[1])
            begin = round(e["ts"] * 1000)
            found[device].append((begin, begin + round(e["dur"] * 1000), e["args"]["idle_ns"]))
    return found


def idle_between(ops, begin, end):
    """Of that time, what no operation took; in the order of their begins."""
    at, idle = begin, 0
    for op in ops:
        if op["begin_ns"] >= end:
            break
        idle += max(op["begin_ns"] - at, 0)
        at = max(at, op["end_ns"])
    return idle + max(end - at, 0)


def judge_intervals(gpu, ops, intervals, clock):
    ops = sorted(ops, key=lambda op: op["begin_ns"])
    for begin, end, ns in intervals:
        idle = idle_between(ops, clock(begin), clock(end))
        if ns > idle + GRAIN_NS:
            yield f"GPU {gpu['device']}: from {begin} to {end} ns idle for {ns} ns, in truth {idle}"
    said = sum(ns for _, _, ns in intervals)
    if said != gpu["certain_ns"]:
        yield f"GPU {gpu['device']}: the timeline has {said} ns of idle time, the report {gpu['certain_ns']}"


def main():
    table, as_report = "--table" in sys.argv, "--as-report" in sys.argv
    folder, notes, report, dump, timeline = [a for a in sys.argv[1:] if not a.startswith("--")]
    ops = defaultdict(list)
    for r in rows(one(folder, "gpu")):
        ops[int(r["device"])].append({k: int(r[k]) for k in ("begin_ns", "end_ns", "submit_ns", "call_begin_ns", "tid")})
    threads = threads_of(folder, notes, sorted(op["end_ns"] for of_gpu in ops.values() for op in of_gpu))
    with open(report, encoding="utf-8") as file:
        report = json.load(file)
    clock = clock_of(dump)
    phase = report["phases"][0]
    begin, end = clock(phase["begin_ns"]), clock(phase["end_ns"])
    proofs = sorted(
        [c[1] for t in threads.values() for c in t.calls if WAITING.search(c[2])]
        + [note[1] for t in threads.values() for note in t.notes if note[2] == "gpu-query"]
    )
    if as_report:
        for gpu in report["gpus"]:
            idle, causes, _ = true_idle(ops[gpu["device"]], threads, begin, end, proofs)
            causes["cuda-call"] += causes.pop(HELD_UP, 0)
            causes["unexplained"] += causes.pop(None, 0)
            gpu.update(busy_known="exact", idle_ns=idle, idle_max_ns=idle, busy_ns=end - begin - idle)
            gpu["idle_causes"] = [{"cause": c, "ns": ns, "site": None} for c, ns in causes.items()]
        json.dump(report, sys.stdout)
        return
    wrong, intervals = [], intervals_of(timeline)
    if {g["device"] for g in report["gpus"]} != set(ops):
        wrong.append(f"GPUs {[g['device'] for g in report['gpus']]}, in truth {sorted(ops)}")
    for gpu in report["gpus"]:
        idle, causes, provable = true_idle(ops[gpu["device"]], threads, begin, end, proofs)
        exact = gpu["busy_known"] == "exact"
        said = defaultdict(int)
        for row in gpu["idle_causes"]:
            said[SAME.get(row["cause"], row["cause"])] += row["ns"]
        grain = GRAIN_NS + (end - begin) // 10**6
        if sum(said.values()) != gpu["idle_ns"]:
            wrong.append(f"GPU {gpu['device']}: causes are {sum(said.values())} ns of {gpu['idle_ns']}")
        if gpu["idle_ns"] > idle + grain:
            wrong.append(f"GPU {gpu['device']}: idle for {gpu['idle_ns']} ns, in truth {idle}")
        if gpu["idle_max_ns"] < idle - grain:
            wrong.append(f"GPU {gpu['device']}: at most {gpu['idle_max_ns']} ns idle, in truth {idle}")
        wrong += judge_intervals(gpu, ops[gpu["device"]], intervals[gpu["device"]], clock)
        if exact:
            busy = end - begin - idle
            if abs(gpu["busy_ns"] - busy) > grain + busy // 200 or gpu["idle_ns"] < idle - grain - idle // 200:
                wrong.append(f"GPU {gpu['device']}: busy {gpu['busy_ns']} and idle {gpu['idle_ns']} ns, in truth {busy} {idle}")
        # What came behind the last operation can be any cause's.
        if not exact:
            causes = provable
        right = sum(min(ns, causes[cause]) for cause, ns in said.items())
        right += min(causes[HELD_UP], sum(max(said[c] - causes[c], 0) for c in MAY_BE_HELD_UP))
        right = min(right + causes[None], gpu["idle_ns"])
        print(
            gpu["device"],
            gpu["busy_known"],
            idle // 1000,
            gpu["idle_ns"] // 1000,
            gpu["idle_max_ns"] // 1000,
            gpu["idle_ns"] // 1000,
            right // 1000,
        )
        if table:
            for cause in sorted(set(causes) | set(said), key=lambda c: -causes[c]):
                print(f"    {cause or 'behind the last'}: true {causes[cause] // 1000} us, said {said[cause] // 1000}")
    if wrong:
        sys.exit("judge_idle: " + "; ".join(wrong))


main()
