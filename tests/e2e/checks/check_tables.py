"""Are the tables of an export those of the report? Called by test_tables.sh.

    check_tables.py sqlite FILE REPORT.json [OPERATIONS]     OPERATIONS of GPUs are recorded
    check_tables.py csv FOLDER REPORT.json

The queries are made as those of Nsight Systems' own reports and of people's scripts are: from the documented columns. Prints
what was compared: a word and how much of it there was.
"""
import collections
import csv
import json
import os
import sqlite3
import sys


class Wrong(Exception):
    pass


def want(what, got, wanted):
    if got != wanted:
        raise Wrong(f"{what}: {got}, in the report {wanted}")


def inner_tables(name, rows):
    """The tables within rows, as rows that begin with the number of the row that they are in."""
    found = collections.defaultdict(list)
    for number, row in enumerate(rows, 1):
        for key, value in row.items():
            if isinstance(value, list):
                found[f"{name}_{key}"] += [{"row": number, **inner} for inner in value]
    return found


def report_tables(report):
    """All tables of a report by name: lists of rows, without the tables in them."""
    tables = {}

    def add(name, rows):
        for inner, inner_rows in inner_tables(name, rows).items():
            add(inner, inner_rows)
        tables[name] = [{k: v for k, v in row.items() if not isinstance(v, list)} for row in rows]

    for key, rows in report.items():
        if key != "schema":
            add(key, rows if isinstance(rows, list) else [rows] if rows else [])
    return tables


class Database:
    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row

    def rows(self, query, *values):
        return self.db.execute(query, values).fetchall()

    def one(self, query, *values):
        return self.rows(query, *values)[0][0]


API_SUM = """
    SELECT s.value AS name, count(*) AS n, sum(r.end - r.start) AS ns, max(r.end - r.start) AS longest
    FROM {} AS r JOIN StringIds AS s ON s.id == r.nameId GROUP BY r.nameId ORDER BY ns DESC"""

API_TRACE = """
    SELECT r.start, r.end - r.start AS duration, s.value AS name, r.returnValue AS result, r.correlationId AS corr,
           (r.globalTid / 0x1000000) % 0x1000000 AS pid, r.globalTid % 0x1000000 AS tid, p.name AS process, ts.value AS thread
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
    JOIN StringIds AS s ON s.id == r.nameId
    LEFT JOIN PROCESSES AS p ON p.globalPid == (r.globalTid & 0xFFFFFFFFFF000000)
    LEFT JOIN ThreadNames AS t ON t.globalTid == r.globalTid
    LEFT JOIN StringIds AS ts ON ts.id == t.nameId
    ORDER BY r.start"""

KERNEL_TRACE = """
    SELECT k.start AS start, k.end - k.start AS duration, d.value AS name, b.value AS base, k.deviceId AS device,
           r.start AS api, r.end AS api_end, n.value AS call
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
    JOIN StringIds AS d ON d.id == k.demangledName
    JOIN StringIds AS b ON b.id == k.shortName
    LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
      ON r.correlationId == k.correlationId AND k.globalPid == (r.globalTid & 0xFFFFFFFFFF000000)
    LEFT JOIN StringIds AS n ON n.id == r.nameId"""

MEMORY_SUM = """
    SELECT name, count(*) AS n, sum(ns) AS ns, sum(bytes) AS bytes FROM (
      SELECT '[CUDA memcpy ' || e.label || ']' AS name, m.end - m.start AS ns, m.bytes AS bytes
      FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m JOIN ENUM_CUDA_MEMCPY_OPER AS e ON e.id == m.copyKind
      UNION ALL SELECT '[CUDA memset]', end - start, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET) GROUP BY name"""

OSRT_SUM = """
    SELECT s.value AS name, count(*) AS n, sum(o.end - o.start) AS ns
    FROM OSRT_API AS o JOIN StringIds AS s ON s.id == o.nameId GROUP BY s.value"""

NVTX_SUM = """
    SELECT coalesce(n.text, s.value) AS name, coalesce(d.text, '') AS domain, count(*) AS n, sum(n.eventType == 34) AS marks,
           sum(n.eventType != 34 AND n.end IS NULL) AS open, max(n.end - n.start) AS longest
    FROM NVTX_EVENTS AS n
    LEFT JOIN StringIds AS s ON s.id == n.textId
    LEFT JOIN NVTX_EVENTS AS d ON d.eventType == 75 AND d.domainId == n.domainId
    WHERE n.eventType IN (34, 59, 60) GROUP BY 1, 2"""

NVTX_TRACE = """
    SELECT coalesce(n.text, s.value) AS name, coalesce(d.text, '') AS domain, n.globalTid AS thread, n.start, n.end
    FROM NVTX_EVENTS AS n
    LEFT JOIN StringIds AS s ON s.id == n.textId
    LEFT JOIN NVTX_EVENTS AS d ON d.eventType == 75 AND d.domainId == n.domainId
    WHERE n.eventType IN (59, 60) AND n.end IS NOT NULL ORDER BY n.start"""


def check_calls(db, report, said):
    for table, key in (("CUPTI_ACTIVITY_KIND_RUNTIME", "calls"), ("CUDASPY_NESTED_CALLS", "nested_calls")):
        sums = {r["name"]: (r["n"], r["ns"], r["longest"]) for r in db.rows(API_SUM.format(table))}
        want(key, sums, {r["function"]: (r["count"], r["total_ns"], r["max_ns"]) for r in report[key]})
        said[key] = sum(n for n, _, _ in sums.values())
    threads = collections.defaultdict(lambda: [0, 0])
    names = {}
    before = -1 << 62
    for call in db.rows(API_TRACE):
        threads[call["tid"]][0] += 1
        threads[call["tid"]][1] += call["duration"]
        names[call["tid"]] = (call["process"], call["pid"], call["thread"])
        if call["start"] < before or call["duration"] < 0:
            raise Wrong(f"times of call {call['corr']}")
        before = call["start"]
    wanted = collections.defaultdict(lambda: [0, 0])
    for row in report["threads"]:
        wanted[row["tid"]][0] += row["count"]
        wanted[row["tid"]][1] += row["total_ns"]
        name, pid, thread = names.get(row["tid"], (None, None, None))
        if row["count"] and f"{name}.{pid}" != row["process"].split(", ")[-1].split("@")[0]:
            raise Wrong(f"thread {row['tid']} is of {name}.{pid}, in the report of {row['process']}")
        if row["count"] and thread != (row["name"] or ""):
            raise Wrong(f"thread {row['tid']} is called {thread}, in the report {row['name']}")
    want("threads", dict(threads), {tid: v for tid, v in wanted.items() if v[0]})


def check_parts(db, report, said):
    keys = [r["name"] for r in db.rows("PRAGMA table_info(CUDASPY_CALL_PARTS)")][1:]
    sums = ", ".join(f"sum(p.{key}) AS {key}" for key in keys)
    got = {r["name"]: r for r in db.rows(f"""
        SELECT s.value AS name, {sums}, sum(c.end - c.start) AS total_ns, count(*) AS calls FROM CUDASPY_CALL_PARTS AS p
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS c USING (correlationId) JOIN StringIds AS s ON s.id = c.nameId GROUP BY s.value""")}
    for row in report["function_accounts"]:
        for key in keys + ["total_ns", "calls"]:
            if key in row:
                want(f"{key} of {row['function']}", got[row["function"]][key], row[key])
    for key in keys:
        if key in report["waits"]:
            want(key, db.one(f"SELECT coalesce(sum({key}), 0) FROM CUDASPY_CALL_PARTS"), report["waits"][key])
    said["divided"] = db.one("SELECT count(*) FROM CUDASPY_ACCOUNTS")
    want("calls that are all their own work", db.one("""
        SELECT count(*) FROM CUDASPY_ACCOUNTS AS a JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS c USING (correlationId)
        WHERE own_ns + loading_ns + gpu_intended_ns + gpu_hidden_ns + lock_ns + ioctl_ns + queue_ns + mps_ns + not_running_ns
              + unexplained_ns != c.end - c.start"""), 0)


def check_waits(db, report, said):
    """Each wait lies in its call; those for a lock are as long as the report says of the lock."""
    want("waits outside of their calls", db.one("""
        SELECT count(*) FROM CUDASPY_WAITS AS w LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS c USING (correlationId)
        WHERE c.start IS NULL OR w.globalTid != c.globalTid OR w.start < c.start OR w.end > c.end OR w.start > w.end"""), 0)
    locks = {f"L{r['lockId']}": r["ns"] for r in
             db.rows("SELECT lockId, sum(waited_ns) AS ns FROM CUDASPY_WAITS WHERE lockId IS NOT NULL GROUP BY lockId")}
    want("locks", locks, {r["name"]: r["waited_ns"] + r["waking_ns"] for r in report["locks"] if r["waited_ns"]})
    known = db.one("SELECT coalesce(sum(waited_ns), 0) FROM CUDASPY_WAITS WHERE holderGlobalTid IS NOT NULL")
    if known < report["waits"]["holder_known_ns"] * 0.99 or known > sum(locks.values()):
        raise Wrong(f"waits with holders: {known}, in the report {report['waits']['holder_known_ns']}")
    said["waits"] = db.one("SELECT count(*) FROM CUDASPY_WAITS")
    inside = db.one("SELECT coalesce(sum(waited_ns), 0) FROM CUDASPY_WAITS")
    outside = db.one("SELECT coalesce(sum(waited_ns), 0) FROM CUDASPY_GAPS")
    want("waits in the C library", sum(r["ns"] for r in db.rows(OSRT_SUM)), inside + outside)
    said["gaps"] = db.one("SELECT count(*) FROM CUDASPY_GAPS")


def check_gpus(db, report, said, operations):
    n = 0
    for k in db.rows(KERNEL_TRACE):
        n += 1
        if not k["name"] or not k["base"]:
            raise Wrong("a kernel without a name")
        if k["call"] is not None and k["api"] > k["start"]:
            raise Wrong(f"a kernel at {k['start']} that {k['call']} at {k['api']} has submitted")
        said["launched"] += k["call"] is not None
    said["kernels"] = n
    n += sum(r["n"] for r in db.rows(MEMORY_SUM))
    if operations is not None:
        want("operations", n, operations)
    for gpu in db.rows("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL"):
        if not db.rows("SELECT * FROM TARGET_INFO_GPU WHERE id = ?", gpu[0]):
            raise Wrong(f"no GPU {gpu[0]}")
        if not db.rows("SELECT * FROM TARGET_INFO_CUDA_DEVICE WHERE gpuId = ?", gpu[0]):
            raise Wrong(f"no device that is GPU {gpu[0]}")
    want("GPUs", db.one("SELECT count(*) FROM TARGET_INFO_GPU"), len(report["gpus"]))


def covered(ranges):
    """How long one of these is open, in order of their begin: of ranges in one another each nanosecond once."""
    total, until = 0, -1 << 62
    for begin, end in ranges:
        total += max(end - max(begin, until), 0)
        until = max(until, end)
    return total


def check_ranges(db, report, said):
    """"step 1", "step 2" may be one row of the report: "step #". The time of a name is, in each thread, that in which one of
    its ranges is open: of a function that calls itself it is that of the outermost."""
    ranges = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in db.rows(NVTX_TRACE):
        ranges[row["domain"], row["name"]][row["thread"]].append((row["start"], row["end"]))
    got = {(row["domain"], row["name"]): row for row in db.rows(NVTX_SUM)}
    for row in report["ranges"]:
        if row["names"] > 1:
            continue
        mine = got[row["domain"], row["name"]]
        want(f"ranges {row['name']}", (mine["n"] - mine["marks"], mine["marks"], mine["open"]), (row["count"], row["marks"], row["unended"]))
        if not mine["open"]:
            want(f"time in {row['name']}", sum(map(covered, ranges[row["domain"], row["name"]].values())), row["ns"])
            want(f"longest of {row['name']}", mine["longest"] or 0, row["longest_ns"])
        said["ranges"] += row["count"]


def check_report(db, report, said):
    """Row by row, value by value."""
    tables = report_tables(report)
    names = {r[0] for r in db.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'report\\_%' ESCAPE '\\'")}
    for name, rows in tables.items():
        if f"report_{name}" not in names:
            raise Wrong(f"no table report_{name}")
        want(f"report_{name}", [dict(r) for r in db.rows(f"SELECT * FROM report_{name} ORDER BY rowid")], rows)
        names.discard(f"report_{name}")
        said["rows"] += len(rows)
    for name in names:
        want(name, db.one(f"SELECT count(*) FROM {name}"), 0)


def check_sqlite(path, report, operations):
    said = collections.Counter()
    db = Database(path)
    want("integrity", db.one("PRAGMA integrity_check"), "ok")
    check_calls(db, report, said)
    check_parts(db, report, said)
    check_waits(db, report, said)
    check_gpus(db, report, said, operations)
    check_ranges(db, report, said)
    check_report(db, report, said)
    return said


def check_csv(folder, report):
    """Row by row, as text; what is not known and what is empty look alike to Python."""
    said = collections.Counter()
    tables = report_tables(report)
    for name in os.listdir(folder):
        key = name.removesuffix(".csv")
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
        wanted = tables.pop(key, [])
        if wanted:
            want(f"columns of {name}", rows[0], list(wanted[0]))
        want(name, rows[1:], [["" if v is None else str(v) for v in row.values()] for row in wanted])
        if not rows or not all(rows[0]):
            raise Wrong(f"{name} has no names of columns")
        said["rows"] += len(rows) - 1
    want("tables without a file", [key for key, rows in tables.items() if rows], [])
    return said


def main():
    form, path, report_path = sys.argv[1:4]
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    if form == "csv":
        said = check_csv(path, report)
    else:
        said = check_sqlite(path, report, int(sys.argv[4]) if len(sys.argv) > 4 else None)
    print(" ".join(f"{word}={n}" for word, n in said.items()))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        print(wrong)
        sys.exit(1)
