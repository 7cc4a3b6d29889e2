#!/usr/bin/env python3
"""tests/e2e/checks/judge_ranks.py FOLDER REPORT [--within PERCENT] | --as-report FOLDER: does a report name who held the ranks up?

FOLDER is what ranks_scenario.py leaves, REPORT a report as JSON (`ranks[]` with rank, wait_ns, caused_ns; `findings[]`). Truth is
nccl.<pid>.tsv: of each collective of a communicator, every rank waits from its own beginning to that of the last one, which
caused it; summed by rank. Then

  - each rank's wait_ns and caused_ns, with those before and behind the work (start_wait_ns, start_caused_ns), are the true
    ones, within PERCENT (5) of them or, where that is less, of the time that an unsynchronised clock may be off: 20 us a
    collective;
  - a run with a straggler has one finding straggler-rank (where its kernels are the cause slow-gpu or uneven-work), whose
    text names that rank, and the GPU time it costs is what that rank caused, within PERCENT;
  - a clean run has none of these.

Prints a line: seed, who is named, planted, true and reported cost in us. Status 1 if anything is wrong; what, on stderr.
--as-report: prints the truth as a right report would say it, to try the judge."""

import collections
import glob
import json
import re
import sys

CLOCK_NS = 20000
FINDINGS = ("straggler-rank", "slow-gpu", "uneven-work")
SITES = {"free": "cudaFree|cudaMalloc", "load": "read", "sync": "cudaDeviceSynchronize", "cpu": "", "nap": "what no other rank does", "kernel": ""}
POINT_TO_POINT = ("Send", "Recv")


def read(path):
    with open(path) as file:
        names = file.readline().lstrip("#").rstrip("\n").split("\t")
        return [dict(zip(names, line.rstrip("\n").split("\t"))) for line in file]


def truth(folder):
    """-> {rank: (wait_ns, caused_ns)}, collectives"""
    together = collections.defaultdict(list)
    for path in glob.glob(f"{folder}/truth/nccl.*.tsv"):
        for op in read(path):
            if op["func"] not in POINT_TO_POINT:
                together[op["comm"], op["func"], op["seq"]].append((int(op["begin_ns"]), int(op["rank"])))
    wait, caused = collections.Counter(), collections.Counter()
    for begins in together.values():
        last_ns, last = max(begins)
        for begin_ns, rank in begins:
            wait[rank] += last_ns - begin_ns
            caused[last] += last_ns - begin_ns
    ranks = {rank for begins in together.values() for _, rank in begins}
    return {rank: (wait[rank], caused[rank]) for rank in sorted(ranks)}, len(together)


def close(true_ns, said_ns, percent, most_off_ns):
    return abs(true_ns - said_ns) <= max(true_ns * percent / 100, most_off_ns)


def as_report(folder):
    with open(f"{folder}/planted.json") as file:
        planted = json.load(file)
    ranks, _ = truth(folder)
    findings = []
    if planted["rank"] is not None:
        findings.append(
            {
                "id": "slow-gpu" if planted["cause"] == "kernel" else "straggler-rank",
                "title": f"rank {planted['rank']} holds the others up: {SITES[planted['cause']]}",
                "idle_gpu_ns": ranks[planted["rank"]][1],
            }
        )
    return {
        "ranks": [
            {"rank": rank, "wait_ns": wait, "caused_ns": caused, "start_wait_ns": 0, "start_caused_ns": 0}
            for rank, (wait, caused) in ranks.items()
        ],
        "findings": findings,
    }


def judge(folder, report, percent):
    with open(f"{folder}/planted.json") as file:
        planted = json.load(file)
    ranks, collectives = truth(folder)
    off_ns = CLOCK_NS * collectives
    wrong = []
    said = {int(row["rank"]): row for row in report.get("ranks", [])}
    if set(said) != set(ranks):
        wrong.append(f"ranks {sorted(said)}, in truth {sorted(ranks)}")
    for rank in set(said) & set(ranks):
        for key, true_ns in zip(("wait_ns", "caused_ns"), ranks[rank]):
            many = len(ranks) - 1 if key == "caused_ns" else 1
            said_ns = said[rank][key] + said[rank]["start_" + key]
            if not close(true_ns, said_ns, percent, off_ns * many):
                wrong.append(f"rank {rank}: {key} {said_ns}, in truth {true_ns}")
    found = [f for f in report.get("findings", []) if f["id"] in FINDINGS]
    named = [r for f in found for r in re.findall(r"rank ?(\d+)", json.dumps(f))[:1]]
    true_cost = ranks[planted["rank"]][1] if planted["rank"] in ranks else 0
    cost = found[0]["idle_gpu_ns"] if found else 0
    if planted["rank"] in said:
        cost += said[planted["rank"]]["start_caused_ns"]
    if planted["rank"] is None:
        if found:
            wrong.append(f"a clean run, and it says {[f['title'] for f in found]}")
    elif str(planted["rank"]) not in named[:1]:
        wrong.append(f"rank {planted['rank']} is late ({planted['cause']}), named: {named}")
    elif not re.search(SITES[planted["cause"]], json.dumps(found[0])):
        wrong.append(f"the finding does not name the site, {SITES[planted['cause']]}: {found[0]['title']}")
    elif not close(true_cost, cost, percent, off_ns):
        wrong.append(f"the finding costs {cost}, in truth {true_cost}")
    print(
        planted["seed"],
        ",".join(named) or "-",
        "-" if planted["rank"] is None else f"{planted['rank']}:{planted['cause']}",
        true_cost // 1000,
        cost // 1000,
    )
    return wrong


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "--as-report":
        print(json.dumps(as_report(words[1])))
        return 0
    percent = 5.0
    if "--within" in words:
        at = words.index("--within")
        percent = float(words[at + 1])
        del words[at : at + 2]
    if len(words) != 2:
        sys.exit(__doc__)
    with open(words[1]) as file:
        wrong = judge(words[0], json.load(file), percent)
    for text in wrong:
        print(f"{words[0]}: {text}", file=sys.stderr)
    return bool(wrong)


sys.exit(main())
