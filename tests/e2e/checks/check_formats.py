#!/usr/bin/python3
"""One trace, one answer: all numbers that occur in two formats are the same. Called by test_formats.sh.

    check_formats.py CUDASPY [--skip] TRACE...

--skip: those of which there is no report are left out.
Makes of each TRACE (a trace, or a folder of some) all formats there are, and compares each number that means the same: JSON as
read by one thread and by several, with and without options that add tables; HTML; SQLite and CSV; the timelines and folded stacks;
JUnit and SARIF; text. JSON is also compared with itself: its sums. Prints a line for each that differs; the status is 1 if any does.
"""
import base64
import collections
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

import check_export
import check_tables

Wrong = (check_export.Wrong, check_tables.Wrong)

class Checker:
    def __init__(self, tool, trace, folder):
        self.tool, self.trace, self.folder = tool, trace, folder
        self.differences, self.compared = [], collections.Counter()

    def run(self, *arguments):
        environment = {**os.environ, "COLUMNS": "160", "LC_ALL": "C.UTF-8"}
        done = subprocess.run([self.tool, *arguments, self.trace], capture_output=True, env=environment, check=False)
        if done.returncode:
            raise check_export.Wrong(f"{arguments}: status {done.returncode}: {done.stderr.decode(errors='replace')[:300]}")
        return done.stdout.decode("utf-8", errors="replace")

    def json(self, *options):
        return json.loads(self.run("report", "--format=json", *options))

    def path(self, name):
        return os.path.join(self.folder, name)

    def differ(self, where, what, got, wanted):
        self.differences.append(f"{where}: {what}: {got}, elsewhere {wanted}")

    def same(self, where, what, got, wanted):
        self.compared[where] += 1
        if got != wanted:
            self.differ(where, what, got, wanted)

    # ---- the same keys -------------------------------------------------------------------------------------------------

    def walk(self, where, a, b, path=""):
        """All values of `a` are those of `b`."""
        if isinstance(a, dict) and isinstance(b, dict):
            self.same(where, f"{path} keys", sorted(a), sorted(b))
            for key in a.keys() & b.keys():
                self.walk(where, a[key], b[key], f"{path}.{key}")
        elif isinstance(a, list) and isinstance(b, list):
            self.same(where, f"{path} rows", len(a), len(b))
            for i, (x, y) in enumerate(zip(a, b)):
                self.walk(where, x, y, f"{path}[{i}]")
        else:
            self.same(where, path, a, b)

    def check_readings(self, report):
        """However it is read. The tables that an option adds are in no other."""
        for options in (["-j1"], ["-j4", "--verbose"], ["-j3", "--nested"]):
            other = self.json(*options)
            other.pop("nested_calls", None)
            self.walk(f"JSON {' '.join(options)}", other, report)

    def check_html(self, report):
        page = self.path("page.html")
        self.run("report", "--format=html", "-o", page)
        with open(page, encoding="utf-8") as file:
            found = re.search(r'<script type="text/plain" id="report">\s*([A-Za-z0-9+/=]*)\s*</script>', file.read())
        payload = json.loads(zlib.decompress(base64.b64decode(found.group(1), validate=True)))
        for key, n in payload.pop("rows_left_out").items():
            self.same("HTML", f"{key}: rows in all", len(payload[key]) + n, len(report[key]))
            report = {**report, key: report[key][: len(payload[key])]}
        # Its timeline has places that the report has none of: it looks into more files for them. All that the report looked into
        # are among them, and each summary counts its own.
        self.same("HTML", "files", [row for row in report["files"] if row not in payload["files"]], [])
        for where, one in (("JSON", report), ("HTML", payload)):
            counted = re.match(r"(\d+) that ran ", one["summary"]["unread"] or "")
            self.same(where, "files that the summary counts", int(counted.group(1)) if counted else 0, len(one["files"]))
        payload["files"] = report["files"]
        payload["summary"]["unread"] = report["summary"]["unread"]
        self.walk("HTML", payload, report)

    # ---- exports ---------------------------------------------------------------------------------------------------------

    def export(self, form, check):
        path = self.path("exported")
        for options in ([], ["-j1"]) if form in ("sqlite", "csv") else ([],):
            self.run("export", f"--format={form.split()[0]}", *form.split()[1:], "-o", path + form.replace(" ", "-"), *options)
            try:
                check(path + form.replace(" ", "-"))
                self.compared[form] += 1
            except Wrong as wrong:
                self.differences.append(f"{form}: {wrong}")

    def check_exports(self, report):
        def timeline(form, path):
            t = check_export.READERS[form](path)
            check_export.check_timeline(t, report, False)
            self.check_threads(form, t, report)

        self.export("sqlite", lambda path: check_tables.check_sqlite(path, report, None))
        self.export("csv", lambda path: check_tables.check_csv(path, report))
        self.export("folded", lambda path: check_export.check_folded(path, report, "thread"))
        self.export("folded --by=cause", lambda path: self.check_causes(path, report))
        self.export("chrome", lambda path: timeline("chrome", path))
        if os.access("/usr/bin/protoc", os.X_OK):
            self.export("perfetto", lambda path: timeline("perfetto", path))

    def check_causes(self, path, report):
        check_export.check_folded(path, report, "cause")

    def check_threads(self, form, timeline, report):
        """Each thread's calls by function, and what their time went into. Several threads may have one number: an image and the one
        that it becomes by exec(), or two of two hosts. Tracks of them have numbers of their own, and the real one in their name; so
        what is compared is all rows of a number, in order."""
        sums = collections.defaultdict(collections.Counter)
        for s in timeline.slices:
            if s.category == "call":
                parts = {b: s.arguments.get(f"{b}_ns", 0) for b in check_export.BUCKETS}
                if not any(parts.values()):
                    parts["own"] = s.ns
                sums[s.track, s.name].update(parts)
                sums[s.track, s.name].update(total=s.ns, calls=1)
        keys = ("total", "calls", *check_export.BUCKETS)
        got, wanted = collections.defaultdict(list), collections.defaultdict(list)
        for (track, function), row in sums.items():
            number = int(re.search(r"(\d+)\)?$", timeline.tracks[track]).group(1))
            got[number, function].append(tuple(row[key] for key in keys))
        for row in report["accounts"]:
            wanted[row["thread"], row["function"]].append(tuple(row["calls" if key == "calls" else f"{key}_ns"] for key in keys))
        for thread, function in got.keys() | wanted.keys():
            self.same(form, f"{function} of thread {thread}: {', '.join(keys)}", sorted(got[thread, function]), sorted(wanted[thread, function]))

    # ---- findings ----------------------------------------------------------------------------------------------------------

    def check_junit(self, report):
        costs = {}
        for row in report["findings"]:
            costs.setdefault(row["id"], []).append(row["cost_ns"])
        suite = xml.etree.ElementTree.fromstring(self.run("report", "--format=junit"))[0]
        failures = 0
        for case in suite:
            ns = costs.pop(case.get("name"), [])
            failures += case.find("failure") is not None
            if case.get("time") is None:
                self.same("JUnit", f"cost of {case.get('name')} is unknown", None in ns, True)
            elif case.get("name") != "complete-data":
                self.same("JUnit", f"time of {case.get('name')}", case.get("time"), f"{sum(ns) / 1e9:.6f}")
        self.same("JUnit", "findings of no detector", sorted(costs), [])
        self.same("JUnit", "tests", suite.get("tests"), str(len(suite)))
        self.same("JUnit", "failures", suite.get("failures"), str(failures))
        problems = {row["id"] for row in report["findings"] if row["severity"] == "problem"}
        self.same("JUnit", "detectors with problems", failures, len(problems))

    def check_sarif(self, report):
        results = json.loads(self.run("report", "--format=sarif"))["runs"][0]["results"]
        self.same("SARIF", "results", len(results), len(report["findings"]))
        for result, row in zip(results, report["findings"]):
            self.same("SARIF", "id", result["ruleId"], row["id"])
            for key, value in result["properties"].items():
                self.same("SARIF", f"{key} of #{row['rank']}", value, row[key])
            self.same("SARIF", f"gain of #{row['rank']}", gain_of(row) in result["message"]["text"], True)

    # ---- text --------------------------------------------------------------------------------------------------------------

    def check_text(self, report):
        for options in ([], ["--verbose", "--nested"]):
            sections = sections_of(self.run("report", "--color=never", *options))
            for key, columns in TABLES.items():
                if key not in sections:
                    continue
                at, text = 0, sections[key]
                left = re.search(r"(?:and |^)([\d,]+) (?:more|that are|that is)\b[^\n]*(?:--format=json|--verbose)", text)
                rows = report[key][: len(report[key]) - int(left.group(1).replace(",", ""))] if left else report[key]
                for row in rows:
                    cells = " ".join(cell(row[c.strip("?")], c) for c in columns.split())
                    found = text.find(f" {cells} ", at)
                    self.same("text", f"{key}: {cells} of {str(list(row.values())[0])[:40]}", found >= 0, True)
                    at = found if found >= 0 else at
            self.check_findings_text(sections.get("findings", ""), report)
            self.check_sentences(sections, report)

    def check_findings_text(self, text, report):
        places = []
        for row in report["findings"]:
            cost = "?" if row["cost_ns"] is None else cell(row["cost_ns"], "ns")
            places.append(text.find(f" {row['rank']} {cost} ", places[-1] if places else 0))
            if places[-1] < 0:
                places.pop()
                break
        for row, begin, end in zip(report["findings"], places, places[1:] + [len(text)]):
            for what, words in (("gain", gain_of(row)), ("share", row["share"] or "")):
                self.same("text", f"{what} of #{row['rank']}: {words!r}", words in text[begin:end], True)
        more = re.search(r"([\d,]+) (?:more|that is|that are)\b[^(]*\(--", text)
        self.same("text", "findings", len(places) + (int(more.group(1).replace(",", "")) if more else 0), len(report["findings"]))

    def check_sentences(self, sections, report):
        """What the first lines and those on waits say of the sums."""
        s, w = report["summary"], report["waits"]
        about = sections["summary"]
        for words in (f"traced {cell(s['duration_ns'], 'ns')}", f"{s['records']:,} record",
                      f"{s['calls']:,} by {s['threads']:,} thread", s["found"] or ""):
            self.same("text", f"the beginning says {words!r}", " ".join(words.split()) in about, True)
        if not w or "waits" not in sections:
            return
        # Own work has what such calls take in the kernel module in any case, and says so; of the kernel module the rest is lost.
        own = re.search(r"\bown work ([\d.]+ [num]?s)(?: \(([\d.]+ [num]?s) of it in the kernel module\))?,", sections["waits"])
        self.same("text", "waits: own work, and of that in the kernel module", own and own.groups(),
                  (cell(w["own_ns"] + w["kernel_work_ns"], "ns"), cell(w["kernel_work_ns"], "ns") if w["kernel_work_ns"] else None))
        for key, name in (("loading", "loading code"), ("gpu_intended", "the calls are made for"), ("gpu_hidden", "hidden GPU waits"),
                          ("lock", "locks"), ("ioctl", "kernel module"), ("queue", "full queues"), ("not_running", "not running"),
                          ("unexplained", "unexplained")):
            found = re.search(rf"\b{name} (?:\((?=[^()]*\)))?([\d.]+ [num]?s)\b", sections["waits"])
            if found:
                self.same("text", f"waits: {key}", found.group(1), cell(w[f"{key}_ns"] - (key == "ioctl") * w["kernel_work_ns"], "ns"))

    # ---- JSON with itself --------------------------------------------------------------------------------------------------

    def check_sums(self, report):
        s, w = report["summary"], report["waits"]
        same = functools.partial(self.same, "sums")
        same("problems", s["problems"], sum(f["severity"] == "problem" for f in report["findings"]))
        same("notes", s["notes"], sum(f["severity"] == "note" for f in report["findings"]))
        for key in ("count", "total_ns"):
            wanted = s["calls" if key == "count" else "call_ns"]
            for table in ("calls", "threads", "devices"):
                same(f"{key} of {table}", sum(row[key] for row in report[table]), wanted)
        same("copied by threads", sum(row["copied_bytes"] for row in report["threads"]), s["copied_bytes"])
        same("failed", sum(row["failed"] for row in report["calls"]), s["failed"])
        same("ranks of findings", [f["rank"] for f in report["findings"]], list(range(1, len(report["findings"]) + 1)))
        for f in report["findings"]:
            if f["gain_high_ns"] is not None:
                same(f"bounds of #{f['rank']}", f["gain_low_ns"] <= f["gain_high_ns"], True)
            if f["cost_ns"] is not None and f["others_ns"] is not None:
                same(f"cost of #{f['rank']}", f["cost_ns"], f["own_ns"] + f["others_ns"])
        if w:
            same("parts of all calls", sum(w[f"{b}_ns"] for b in check_export.BUCKETS), w["total_ns"])
            same("lost by threads", sum(row["lost_ns"] for row in report["accounts"]), w["lost_ns"])
            same("lost in functions", sum(row["lost_ns"] for row in report["function_accounts"]), w["lost_ns"])
        for g in report["gpus"]:
            name = f"GPU {g['device']} of {g['process']}"
            same(f"{name}: bounds", g["idle_ns"] <= g["idle_max_ns"], True)
            if g["busy_known"] == "bounds":
                same(f"{name}: idle at most, and busy", g["idle_max_ns"] + g["busy_ns"], g["work_ns"])
                same(f"{name}: causes", sum(c["ns"] for c in g["idle_causes"] or []), g["idle_ns"])
        for row in report["rank_steps"]:
            same("slow steps", row["slow_more_ns"], row["slow_ns"] - row["slow_count"] * row["median_ns"])
        for r in report["ranks"]:
            same(f"waits of rank {r['rank']}", sum(x["ns"] for x in r["waited_for"]), r["wait_ns"])
        same("waits of ranks", sum(r["wait_ns"] for r in report["ranks"]), sum(r["caused_ns"] for r in report["ranks"]))
        same("waits in operations", sum(c["wait_ns"] for c in report["collectives"]), sum(r["wait_ns"] for r in report["ranks"]))

    def check(self):
        report = self.json()
        nested = self.json("--nested")
        for check, of in ((self.check_readings, report), (self.check_html, report), (self.check_sums, report), (self.check_junit, report),
                          (self.check_sarif, report), (self.check_exports, nested), (self.check_text, nested)):
            try:
                check(of)
            except Wrong as wrong:
                self.differences.append(f"{check.__name__}: {wrong}")


def cell(value, unit):
    """A number as text shows it, by its unit or the end of its key."""
    unit = unit.strip("?")
    if value is None:
        return "?"
    if isinstance(value, str):
        return value
    if unit.endswith("ns"):
        for step, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
            if value >= step:
                scaled = value / step
                return f"{scaled:.{3 if scaled < 10 else 2 if scaled < 100 else 1 if scaled < 1000 else 0}f} {name}"
        return f"{value} ns"
    if unit.endswith("bytes"):
        if value < 1024:
            return f"{value} B"
        names = ["KiB", "MiB", "GiB", "TiB"]
        scaled, i = value / 1024, 0
        while scaled >= 1024 and i < 3:
            scaled, i = scaled / 1024, i + 1
        return f"{scaled:.{2 if scaled < 10 else 1}f} {names[i]}"
    if unit in ("thread", "tid", "waiter", "holder", "root"):
        return str(value)
    return f"{value:,}"


def gain_of(row):
    """The words for a finding's gain; empty: it has none."""
    low, high = row["gain_low_ns"], row["gain_high_ns"]
    if row["cost_ns"] is None or not high:
        return ""
    if low >= high - high // 100:
        return f"Gains about {cell(high, 'ns')} of"
    if not low:
        return f"Gains up to {cell(high, 'ns')} of"
    return f"Gains {cell(low, 'ns')} to {cell(high, 'ns')} of"


# Where a section's title begins so, its rows have these numbers beside each other.
TITLES = {"CUDASPY REPORT": "summary", "FINDINGS:": "findings", "WAITS:": "waits", "CALLS of the application": "calls",
          "CALLS made inside": "nested_calls", "ACCOUNTS:": "function_accounts", "THREADS,": "threads", "COUNTED and": "counted",
          "LOCKS that": "locks", "COLLECTIVE OPERATIONS:": "collectives", "DEVICES that": "devices"}
TABLES = {
    "calls": "count total_ns median_ns p99_ns max_ns",
    "nested_calls": "count total_ns median_ns p99_ns max_ns",
    "function_accounts": "calls total_ns expected_ns gpu_intended_ns lost_ns",
    "threads": "count total_ns copied_bytes",
    "devices": "count total_ns copied_bytes",
    "counted": "count recorded",
    "collectives": "count bytes wait_ns transfer_ns",
}


def sections_of(text):
    """Each section's words, one blank between any two."""
    sections = {}
    for part in text.split("\n\n"):
        title = next((key for begin, key in TITLES.items() if part.startswith(begin)), None)
        if title is None and not part[:1].isspace():
            last = None
        else:
            last = title or last
        if last:
            sections[last] = sections.get(last, "") + part + "\n"
    return {key: " " + " ".join(value.split()) + " " for key, value in sections.items()}


def main():
    tool, status, skip = sys.argv[1], 0, "--skip" in sys.argv
    for trace in sys.argv[2 + skip:]:
        if skip and subprocess.run([tool, "report", "--format=json", trace], capture_output=True, check=False).returncode:
            print(f"{trace}: no report")
            continue
        with tempfile.TemporaryDirectory() as folder:
            checker = Checker(tool, trace, folder)
            checker.check()
        for line in checker.differences[:20]:
            print(f"{trace}: {line}")
        if len(checker.differences) > 20:
            print(f"{trace}: and {len(checker.differences) - 20} more")
        print(f"{trace}: {len(checker.differences)} differences; compared: " + ", ".join(f"{n} {what}" for what, n in checker.compared.items()))
        status |= bool(checker.differences)
    sys.exit(status)


main()
