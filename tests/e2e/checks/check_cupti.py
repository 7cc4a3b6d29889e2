"""tests/e2e/checks/check_cupti.py RECORDS GPU_TSV [how]: what the look-alike of CUPTI told tests/sim/selftest_cupti.c against the
simulator's truth. Each operation is there once, with its times (a microsecond off at most), its call's
correlation and its submitting thread. how: graph (graphs come as a whole), broken (some times are not usable:
those must be few and the others right), drop (what is missing is counted). Prints what is wrong, exits with 1 then."""

import sys

SLACK_NS = 1000


def fail(text):
    sys.exit(f"check_cupti: {text}")


def main():
    records, truth_path = sys.argv[1:3]
    how = sys.argv[3] if len(sys.argv) > 3 else ""
    dropped, told, graphs, calls = 0, {}, {}, {}
    for line in open(records, encoding="utf-8"):
        f = line.rstrip("\n").split("\t")
        if f[0] == "dropped":
            dropped = int(f[1])
        elif f[0] == "call":
            if calls.setdefault(int(f[6]), f) is not f:
                fail(f"two driver calls with one correlation: {f} {calls[int(f[6])]}")
        elif f[0] == "graph":
            graphs[int(f[6])] = f
        else:
            told.setdefault((f[0], int(f[6]), f[2], f[5], f[8]), []).append(f)

    broken = missing = right = 0
    spans = {}
    for line in open(truth_path, encoding="utf-8"):
        t = line.rstrip("\n").split("\t")
        if t[0] == "#device":
            continue
        name = t[15] if t[2] == "kernel" else "-"
        begin, end, correlation = int(t[8]), int(t[9]), int(t[13])
        if how == "graph" and t[14] != "0":
            span = spans.setdefault(correlation, [begin, end])
            span[0], span[1] = min(span[0], begin), max(span[1], end)
            continue
        key = (t[2], correlation, t[3], t[10], name)
        same = told.get(key, [])
        if not same:
            missing += 1
            continue
        best = min(same, key=lambda f: abs(int(f[3]) - begin) + abs(int(f[4]) - end))
        same.remove(best)
        if best[1] != t[0] or best[7] != t[14]:
            fail(f"another device or graph: {best} for {t}")
        if abs(int(best[3]) - begin) > SLACK_NS or abs(int(best[4]) - end) > SLACK_NS:
            broken += 1
            if how != "broken" or (best[3] != "0" and int(best[4]) > int(best[3])):
                fail(f"other times: {best} for {t}")
        right += 1
        call = calls.get(correlation)
        if not call:
            missing += 1
            continue
        if call[2] != t[4]:
            fail(f"submitted by {t[4]}, told {call}")
        if abs(int(call[3]) - int(t[6])) > 10**9 or not int(t[6]) - SLACK_NS <= int(call[3]) <= int(t[7]) + SLACK_NS:
            fail(f"its call is not within {t[6]}..{t[7]}: {call}")
    for correlation, span in spans.items():
        graph = graphs.pop(correlation, None)
        if not graph or abs(int(graph[3]) - span[0]) > SLACK_NS or abs(int(graph[4]) - span[1]) > SLACK_NS:
            fail(f"graph launch {correlation} {span}: {graph}")
    left = sum(len(x) for x in told.values()) + len(graphs)
    if left:
        fail(f"{left} records of nothing")
    if right < 300:
        fail(f"only {right} operations")
    if how == "broken" and not right / 20 < broken < right / 5:
        fail(f"{broken} of {right} with unusable times")
    if how == "drop" and not (dropped and missing):
        fail(f"{missing} missing, {dropped} dropped")
    if how != "drop" and (missing or dropped):
        fail(f"{missing} missing, {dropped} dropped")
    print(f"{right} operations right{', ' + str(broken) + ' without times' if broken else ''}")


main()
