#!/usr/bin/env python3
"""Holds the truth of the simulator's look-alike of NCCL (nccl.<pid>.tsv, gpu.<pid>.tsv) against what it promises, and what
profiler plugins got against that. Usage: check_nccl.py VERSION TRUTH_DIR [PLUGIN_FILE...]; VERSION 0: no plugin.

Used by test_sim_nccl.sh. Prints what is wrong; status 1 then."""

import collections
import glob
import re
import sys

SPREAD_NS = 2000
wrong = []


def read(path):
    with open(path) as file:
        names = file.readline().lstrip("#").rstrip("\n").split("\t")
        for line in file:
            yield dict(zip(names, line.rstrip("\n").split("\t")))


def check_ends(operations):
    """An all-reduce ends at all ranks when the last one has begun and its time is over."""
    together = collections.defaultdict(list)
    for op in operations:
        if op["func"] in ("AllReduce", "AllGather", "ReduceScatter"):
            together[op["comm"], op["func"], op["seq"]].append(op)
    for key, ranks in together.items():
        last = max(int(op["begin_ns"]) for op in ranks)
        ends = [int(op["end_ns"]) for op in ranks]
        if max(ends) - min(ends) >= SPREAD_NS or min(ends) <= last:
            wrong.append(f"{key}: ends {ends}, the last one began at {last}")
    return len(together)


def check_gpu(folder, pid, operations):
    """Each operation's kernel ran on the GPU at these times."""
    kernels = {
        (row["begin_ns"], row["end_ns"])
        for row in read(f"{folder}/gpu.{pid}.tsv")
        if "ncclDevKernel" in row["name"]
    }
    for op in operations:
        if (op["begin_ns"], op["end_ns"]) not in kernels:
            wrong.append(f"no kernel of {pid} is {op}")


def check_plugin(version, path, operations):
    """The plugin got each operation once, its kernel's times by the GPU's timer, and each start has its stop."""
    starts, colls, begins, ends = {}, {}, {}, {}
    p2p = 0
    for line in open(path):
        words = line.split()
        if words[0] == "start":
            number = int(words[2])
            starts[number] = False
            if words[1] == "coll":
                colls[number] = re.search(r"seq (\d+) func (\S+)", line).groups()
            elif words[1] == "p2p":
                p2p += 1
            elif words[1] == "kernel":
                begins.setdefault(int(words[4]), []).append(int(words[-1]))
                parent = int(words[4])
                ends[number] = parent
        elif words[0] == "stop":
            starts[int(words[1])] = True
        elif words[0] == "state" and words[2] == "22":
            colls.setdefault(("end", ends[int(words[1])]), []).append(int(words[-1]))
    if not all(starts.values()):
        wrong.append(f"{path}: events without a stop: {[n for n, s in starts.items() if not s]}")
    told = {value: number for number, value in colls.items() if not isinstance(number, tuple)}
    func_of = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"]
    wanted = [op for op in operations if op["func"] not in ("Send", "Recv")]
    if len(told) < len({(op["seq"], op["func"]) for op in wanted}):
        wrong.append(f"{path}: {len(told)} collectives of {len(wanted)}")
    if p2p != len(operations) - len(wanted):
        wrong.append(f"{path}: {p2p} sends and receives")
    if version >= 3 and not begins:
        wrong.append(f"{path}: no kernels")
    if version < 4:
        return
    timers = {(min(begins[n]), max(colls["end", n])) for n in begins}
    for op in wanted:
        if (int(op["gpu_begin_ns"]), int(op["gpu_end_ns"])) not in timers:
            wrong.append(f"{path}: nothing at the times of {op}")


def main():
    version, folder, plugins = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    everything = []
    for path in glob.glob(f"{folder}/nccl.*.tsv"):
        pid = path.split(".")[-2]
        operations = list(read(path))
        everything += operations
        check_gpu(folder, pid, operations)
        for plugin in plugins:
            if plugin.endswith(f".{pid}"):
                check_plugin(version, plugin, operations)
    if not check_ends(everything):
        wrong.append("no collectives at all")
    for text in wrong[:10]:
        print(text)
    return bool(wrong)


sys.exit(main())
