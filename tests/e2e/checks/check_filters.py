#!/usr/bin/python3
"""tests/e2e/checks/check_filters.py TOOL DIR...: are reports on parts of a recording parts of the report on all of it?

For each kind of option the recording is cut into parts that have nothing in common and leave nothing out: by thread, by
function, by GPU, by process, by rank, by time, and by two of these. Calls, their time, where it went, locks and getters of all
parts must add up to those of the whole, each part and what it leaves out as well, and the rows of a part must be the whole's.
The lines of `cudaspy dump` likewise. Prints how many parts were looked at; status 1 after a line for each thing that is not so.
"""
import collections
import json
import subprocess
import sys

tool, dirs = sys.argv[1], sys.argv[2:]
wrong = 0
looked_at = 0

BUCKETS = ("total_ns", "lost_ns", "lock_waited_ns", "lock_waits", "own_ns", "gpu_hidden_ns", "gpu_intended_ns", "lock_ns", "ioctl_ns", "queue_ns",
           "not_running_ns", "unexplained_ns")


def say(text):
    global wrong
    wrong += 1
    print(text)


def run(*words):
    done = subprocess.run([tool, *words, *dirs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        say(f"cudaspy {' '.join(words)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return None
    return done.stdout


def report(*options):
    text = run("report", "--format=json", "--nested", *options)
    return json.loads(text) if text else None


def sums(r):
    found = collections.Counter({"calls": r["summary"]["calls"], "call_ns": r["summary"]["call_ns"], "failed": r["summary"]["failed"],
                                 "copied": r["summary"]["copied_bytes"]})
    for key in BUCKETS:
        if isinstance(r["waits"].get(key), int):
            found[key] = r["waits"][key]
    for row in r["accounts"]:
        for key, value in row.items():
            if isinstance(value, int) and key.endswith("_ns") and key != "expected_ns":
                found["accounts " + key] += value
    for row in r["calls"]:
        found["calls of " + row["function"]] = row["count"]
        found["time in " + row["function"]] = row["total_ns"]
    for row in r["nested_calls"]:
        found["inner calls of " + row["function"]] = row["count"]
    for row in r["locks"]:
        found["waits for locks"] += row["waits"]
        found["waited for locks"] += row["waited_ns"]
    return +found


def difference(a, b):
    return ", ".join(f"{key}: {a[key]}, expected {b[key]}" for key in sorted(set(a) | set(b)) if a[key] != b[key])[:600]


def row_key(row):
    return row["pid"], row["tid"], row["name"], row.get("process")


def look_at_part(options, whole):
    """A part by itself: with what it leaves out it is the whole, and its rows are rows of the whole."""
    global looked_at
    looked_at += 1
    part = report(*options)
    if not part:
        return None
    only, summary, all_of_it = part["only"], part["summary"], whole["summary"]
    name = " ".join(options)
    for key, left, total in (("calls", only["left_out"], all_of_it["calls"]), ("call_ns", only["left_out_ns"], all_of_it["call_ns"]),
                             ("counted", only["left_out_counted"], all_of_it["counted"])):
        if summary[key] + left != total:
            say(f"{name}: {key}: {summary[key]} and {left} left out are not {total}")
    for option in only["options"]:
        if option["calls"] > only["left_out"] or option["ns"] > only["left_out_ns"]:
            say(f"{name}: --{option['option']} leaves out more than all: {option} {only}")
    if sum(option["calls"] for option in only["options"]) < only["left_out"]:
        say(f"{name}: left out by no option: {only}")
    if (part["losses"], part["expectations"]) != (whole["losses"], whole["expectations"]):
        say(f"{name}: losses or expectations are others")
    return part


def look_at_parts(parts, whole, what, counted=False):
    # Before a thread has a GPU, calls inside its calls are of none.
    inner = what != "GPU"
    total = collections.Counter()
    getters = 0
    found = []
    for options in parts:
        part = look_at_part(options, whole)
        if not part:
            return found
        total += sums(part)
        getters += part["summary"]["counted"]
        found.append(part)
    wanted = sums(whole)
    if not inner:
        total, wanted = (collections.Counter({k: v for k, v in x.items() if not k.startswith("inner")}) for x in (total, wanted))
    if total != wanted:
        say(f"by {what}: {difference(total, wanted)}")
    if counted and getters != whole["summary"]["counted"]:
        say(f"by {what}: {getters} getters of {whole['summary']['counted']}")
    return found


def same_rows(parts, whole, table, key, columns):
    """The rows of all parts are the rows of the whole."""
    rows = collections.defaultdict(collections.Counter)
    for part in parts:
        for row in part[table]:
            for column in columns:
                rows[key(row)][column] += row[column]
    for row in whole[table]:
        wanted = collections.Counter({column: row[column] for column in columns})
        if +rows[key(row)] != +wanted:
            say(f"{table}: {key(row)}: {dict(rows[key(row)])}, expected {dict(wanted)}")


def dump_lines(*options):
    text = run("dump", *options)
    return text.splitlines() if text is not None else []


def is_call(line, depth="0"):
    words = line.split(" ", 4)
    return words[2] == depth


def look_at_dump(parts, what):
    lines = dump_lines()
    calls = sorted(line for line in lines if is_call(line))
    of_parts = []
    for options in parts:
        of_parts += dump_lines(*options)
    if what == "time" and of_parts != lines:
        say(f"dump by {what}: {len(of_parts)} lines, of {len(lines)}, or in another order")
    if sorted(line for line in of_parts if is_call(line)) != calls:
        say(f"dump by {what}: {sum(map(is_call, of_parts))} calls, of {len(calls)}")
    if set(of_parts) - set(lines):
        say(f"dump by {what}: lines that are not in the whole: {sorted(set(of_parts) - set(lines))[:3]}")


def times(whole):
    """Cuts in the working phase, in which GPUs are accounted for; one of them at a call's end."""
    phases = whole["phases"]
    begin, end = min(p["begin_ns"] for p in phases), max(p["end_ns"] for p in phases)
    cuts = [f"{begin + (end - begin) * part // 1000}ns" for part in (171, 500, 903)]
    returns = [line.split(" ", 1)[0] for line in dump_lines("--from=" + cuts[1]) if is_call(line)]
    if returns and int(returns[0].replace(".", "")) < int(cuts[2][:-2]):
        cuts.insert(2, f"{int(returns[0].replace('.', ''))}ns")
    edges = [None, *dict.fromkeys(cuts), None]
    return [[f"--{name}={cut}" for name, cut in (("from", a), ("to", b)) if cut] for a, b in zip(edges, edges[1:])]


def look_at_gpus(parts, whole):
    """Time of GPUs is cut to the nanosecond, give or take one at each cut for each kind."""
    for gpu in whole["gpus"]:
        of_parts = [row for part in parts for row in part["gpus"] if (row["device"], row["process"]) == (gpu["device"], gpu["process"])]
        if any(row["busy_known"] != gpu["busy_known"] for row in of_parts):
            continue
        for key in ("work_ns", "idle_ns", "busy_ns") if gpu["busy_known"] == "exact" else ("work_ns", "certain_ns"):
            total = sum(row[key] for row in of_parts)
            if abs(total - gpu[key]) > 4 * len(parts):
                say(f"gpus: {gpu['process']} {gpu['device']}: {key} of the parts: {total}, expected {gpu[key]}")


whole = report()
if not whole:
    sys.exit(1)
if "only" in whole:
    say("the whole report is limited")
threads = {str(row["tid"]) for row in whole["threads"]}
functions = {row["function"] for row in whole["calls"]} | {row["function"] for row in whole["nested_calls"]} | {
    row["function"] for row in whole["counted"]}
by_thread = [[f"--thread={tid}"] for tid in sorted(threads)]
by_function = [[f"--function={name}"] for name in sorted(functions)] if len(functions) < 100 else [["--function=*"]]
by_process = [[f"--process={pid}"] for pid in sorted({row["pid"] for row in whole["threads"]})]
devices = sorted({row["device"] for row in whole["devices"] if row["device"].isdigit()})
by_gpu = [[f"--gpu={device}"] for device in devices]
by_rank = [[f"--rank={row['rank']}"] for row in whole.get("ranks", [])]
by_time = times(whole)

found = look_at_parts(by_thread, whole, "thread", True)
same_rows(found, whole, "threads", row_key, ("count", "counted", "total_ns", "copied_bytes"))
found = look_at_parts(by_function, whole, "function", True)
same_rows(found, whole, "calls", lambda row: row["function"], ("count", "failed", "total_ns", "median_ns", "p99_ns", "max_ns"))
found = look_at_parts(by_process, whole, "process", True)
same_rows(found, whole, "devices", lambda row: (row["pid"], row["device"]), ("count", "total_ns", "copied_bytes"))
if all(row["device"].isdigit() or not row["count"] for row in whole["devices"]):
    look_at_parts(by_gpu, whole, "GPU")
    look_at_dump(by_gpu, "GPU")
if by_rank and len(whole["ranks"]) == whole["summary"]["processes"]:
    look_at_parts(by_rank, whole, "rank", True)
    look_at_dump(by_rank, "rank")
found = look_at_parts(by_time, whole, "time")
look_at_gpus(found, whole)
look_at_parts([a + b for a in by_time for b in by_thread[:6]] + [a + b for a in by_time for b in by_thread[6:]], whole, "time and thread")
look_at_parts([a + b for a in by_process for b in by_time], whole, "process and time")
if len(by_function) * len(by_process) < 100:
    look_at_parts([a + b for a in by_process for b in by_function], whole, "process and function", True)
look_at_dump(by_time, "time")
look_at_dump(by_thread, "thread")
look_at_dump(by_function, "function")
look_at_dump(by_process, "process")
print(looked_at)
sys.exit(wrong > 0)
