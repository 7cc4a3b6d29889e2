#!/usr/bin/python3
"""check_html.py FILE [REPORT.json]: an HTML report's timeline, unpacked and compared with the report in it.

Checks what docs/HTML_REPORT.md says: each lane's items fill their bytes exactly, are in order, and refer to names and lanes
that there are; all calls are there, alone or merged, with the report's time; where a call's time went is no more than its time.
With REPORT.json the report in the page is that one. Prints: calls items waits merged_ns bytes.
"""
import base64
import json
import re
import sys
import zlib

VALUES = {"waits": "PNLNP", "gaps": "PNL", "ranges": "NP", "ops": "NPLPP", "idle": "PP", "collectives": "NPPLPP"}


def part(page, name):
    found = re.search(r'<script type="text/plain" id="%s">\s*([A-Za-z0-9+/=]*)\s*</script>' % name, page)
    if not found:
        sys.exit(f"no element #{name}")
    return zlib.decompress(base64.b64decode(found.group(1), validate=True))


class Bytes:
    def __init__(self, data, at, n):
        self.data, self.at, self.end = data, at, at + n

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(str(w) for w in what))


def compare(page, report):
    for key in report:
        cut = page["rows_left_out"].get(key, 0)
        rows = report[key][: len(report[key]) - cut] if cut else report[key]
        check(page[key] == rows, "the report in the page is another one:", key)


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    report, timeline, items = json.loads(part(page, "report")), json.loads(part(page, "timeline")), part(page, "items")
    if len(sys.argv) > 2:
        compare(report, json.load(open(sys.argv[2], encoding="utf-8")))
    check(timeline["schema"] == "cudaspy-timeline-1", "schema", timeline["schema"])
    names, lanes = len(timeline["names"]), len(timeline["lanes"])
    calls = ns = single = n_items = waits = covered = 0
    for lane in timeline["lanes"]:
        for kind, (offset, n, count) in lane["items"].items():
            source, begin = Bytes(items, offset, n), 0
            check(offset == covered, lane["name"], kind, "lies at", offset, "and not at", covered)
            covered += n
            for _ in range(count):
                begin += source.number()
                duration = source.number()
                check(begin + duration <= timeline["end_ns"] + 1000000000, lane["name"], kind, "ends behind the end")
                n_items += 1
                if kind != "calls":
                    for value in VALUES[kind]:
                        number = source.number()
                        check(value != "N" or number < names, kind, "name", number)
                        check(value != "L" or number <= lanes, kind, "lane", number)
                    waits += kind == "waits"
                    continue
                name, merged, where, about = (source.number() for _ in range(4))
                source.number()
                parts = [(source.number(), source.number()) for _ in range(source.number())]
                check(max(name, where, about) < names, "a call's name")
                check(merged >= 1, "no calls in a call")
                check(sum(p[1] for p in parts) <= duration + merged, lane["name"], "at", begin, "parts are longer than the call")
                check(all(p[0] < len(timeline["buckets"]) for p in parts), "bucket")
                calls += merged
                single += merged == 1
                ns += duration if merged == 1 else 0
            check(source.at == source.end, lane["name"], kind, "bytes are left")
    check(covered == len(items), len(items) - covered, "bytes belong to no lane")
    check(calls == timeline["calls"], calls, "calls in lanes of", timeline["calls"])
    check(single == timeline["shown"], single, "single calls of", timeline["shown"])
    direct = report["calls"]
    check(calls == sum(c["count"] for c in direct), calls, "calls, the report has", sum(c["count"] for c in direct))
    total = sum(c["total_ns"] for c in direct)
    check(timeline["merged_ns"] or abs(ns - total) <= calls + total // 1000, "calls took", ns, "and", total)
    check((timeline["merged_ns"] > 0) == any("calls" in s for s in timeline["left_out"]), "left out:", timeline["left_out"])
    numbers = {f["rank"] for f in report["findings"]}  # of the first ones, moments are shown
    for moment in timeline["moments"]:
        check(moment["finding"] in numbers and moment["lane"] < lanes, "moment", moment)
        check(0 <= moment["begin_ns"] <= moment["end_ns"] <= timeline["end_ns"], "moment", moment)
    numbers = {n for n in numbers if n <= 200}
    check(numbers == {m["finding"] for m in timeline["moments"]} or "nowhere" in sys.argv, "findings without a moment:",
          numbers - {m["finding"] for m in timeline["moments"]})
    print(calls, n_items, waits, timeline["merged_ns"], len(page))


main()
