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

VALUES = {"waits": "PNLNP", "gaps": "PNL", "ranges": "NP", "ops": "NPLPP", "idle": "PP", "collectives": "NPPLPP", "looks": "BPPNPP"}


def part(page, name):
    found = re.search(r'<script type="text/plain" id="%s">\s*([A-Za-z0-9+/=]*)\s*</script>' % name, page)
    if not found:
        sys.exit(f"no element #{name}")
    return zlib.decompress(base64.b64decode(found.group(1), validate=True))


def numbers(data):
    """Those in the bytes: seven bits in each, the lowest first; the eighth says that there are more."""
    found, value, shift = [], 0, 0
    for byte in data:
        if byte < 128:
            found.append(value | byte << shift)
            value = shift = 0
        else:
            value |= (byte & 127) << shift
            shift += 7
    check(not shift, "a number has no end")
    return found


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
    names, lanes, buckets = len(timeline["names"]), len(timeline["lanes"]), len(timeline["buckets"])
    last_ns = timeline["end_ns"] + 1000000000
    calls = ns = single = n_items = waits = covered = 0
    for lane in timeline["lanes"]:
        for kind, (offset, n, count) in lane["items"].items():
            source, begin = iter(numbers(items[offset:offset + n])), 0
            number = source.__next__
            check(offset == covered, lane["name"], kind, "lies at", offset, "and not at", covered)
            covered += n
            for _ in range(count):
                begin += number()
                duration = number()
                if begin + duration > last_ns:
                    check(False, lane["name"], kind, "ends behind the end")
                n_items += 1
                if kind != "calls":
                    for value in VALUES[kind]:
                        is_ = number()
                        check(value != "N" or is_ < names, kind, "name", is_)
                        check(value != "L" or is_ <= lanes, kind, "lane", is_)
                        check(value != "B" or is_ <= 1001, kind, "thousandths", is_)
                    waits += kind == "waits"
                    continue
                name, merged, where, about = number(), number(), number(), number()
                number()
                check(name < names and where < names and about < names, "a call's name")
                check(merged >= 1, "no calls in a call")
                in_parts = 0
                for _ in range(number()):
                    check(number() < buckets, "bucket")
                    in_parts += number()
                if in_parts > duration + merged:
                    check(False, lane["name"], "at", begin, "parts are longer than the call")
                calls += merged
                single += merged == 1
                ns += duration if merged == 1 else 0
            check(next(source, None) is None, lane["name"], kind, "bytes are left")
    check(covered == len(items), len(items) - covered, "bytes belong to no lane")
    check(calls == timeline["calls"], calls, "calls in lanes of", timeline["calls"])
    check(single == timeline["shown"], single, "single calls of", timeline["shown"])
    direct = report["calls"]
    check(calls == sum(c["count"] for c in direct), calls, "calls, the report has", sum(c["count"] for c in direct))
    total = sum(c["total_ns"] for c in direct)
    check(timeline["merged_ns"] or abs(ns - total) <= calls + total // 1000, "calls took", ns, "and", total)
    check((timeline["merged_ns"] > 0) == any("calls" in s for s in timeline["left_out"]), "left out:", timeline["left_out"])
    ranks = {f["rank"] for f in report["findings"]}  # of the first ones, moments are shown
    for moment in timeline["moments"]:
        check(moment["finding"] in ranks and moment["lane"] < lanes, "moment", moment)
        check(0 <= moment["begin_ns"] <= moment["end_ns"] <= timeline["end_ns"], "moment", moment)
    ranks = {n for n in ranks if n <= 200}
    check(ranks == {m["finding"] for m in timeline["moments"]} or "nowhere" in sys.argv, "findings without a moment:",
          ranks - {m["finding"] for m in timeline["moments"]})
    print(calls, n_items, waits, timeline["merged_ns"], len(page))


main()
