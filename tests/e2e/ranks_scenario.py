#!/usr/bin/env python3
"""tests/e2e/ranks_scenario.py SEED FOLDER [--clean] [--buckets] [--in-turn]: one simulated data-parallel job, drawn by the seed, recorded into FOLDER.

SEED decides how many ranks (2 to 16) testapps/ranks has, how many steps (20 to 30), who is late, why, how often and by how
much, or that nobody is, whether the all-reduce overlaps, the version of NCCL's profiler interface (4 to 6, which have GPU
times), and offset, drift and resolution of each GPU's timer. With --clean nobody is late; with --buckets a step has several all-reduces of
different sizes. With --in-turn there are two ranks that compute in each step, now one and now the other for longer, and one of them sleeps
in every fourth step (unless --clean): what no other rank does, in a job whose ranks are late about as long.

FOLDER/trace has the traces, FOLDER/truth what really happened (tests/sim/README.md), FOLDER/planted.json what was planted, which
is printed, too, in one line: {"seed", "ranks", "steps", "rank", "cause", "every", "ms", "overlap", "interface"}; rank is null in a
clean run. judge_ranks.py compares them with a report. CUDASPY_BUILD is the build; status 1 if the program fails."""

import json
import os
import random
import subprocess
import sys

CAUSES = ("free", "load", "sync", "cpu", "kernel")


def draw(seed, clean, buckets, in_turn):
    chance = random.Random(seed)
    ranks = chance.choice((2, 2, 3, 4, 4, 6, 8, 8, 12, 16))
    planted = {
        "seed": seed,
        "ranks": ranks,
        "steps": chance.randrange(20, 31),
        "rank": chance.randrange(ranks),
        "cause": chance.choice(CAUSES),
        "every": chance.choice((1, 2, 4)),
        "ms": chance.randrange(10, 31),
        "overlap": chance.random() < 0.2,
        "interface": chance.choice((4, 5, 6)),
        "timer_step_ns": chance.choice((32, 1000)),
        "buckets": 1,
        "in_turn": 0,
    }
    if in_turn:
        planted.update(ranks=2, steps=32, rank=1, cause="nap", every=4, ms=20, overlap=False, in_turn=10)
    if clean or (not in_turn and chance.random() < 0.1):
        # Nor beside other work, where a rank that began late stays behind for ever, and costs nobody anything.
        planted.update(rank=None, cause=None, every=None, ms=None, overlap=False)
    if buckets:
        planted["buckets"] = chance.choice((2, 3, 5))
    return planted


def run(planted, folder):
    build = os.path.abspath(os.environ["CUDASPY_BUILD"])
    here = os.path.dirname(os.path.abspath(__file__))
    for name in ("trace", "truth"):
        os.makedirs(f"{folder}/{name}")
    environment = dict(
        os.environ,
        SPYSIM_GPUS="16",
        SPYSIM_TRUTH=os.path.abspath(f"{folder}/truth"),
        SPYSIM_TRUTH_ALL="0",
        SPYSIM_NCCL_SEED=str(planted["seed"]),
        SPYSIM_NCCL_INTERFACE=str(planted["interface"]),
        SPYSIM_NCCL_TIMER_STEP_NS=str(planted["timer_step_ns"]),
        SPYSIM_NCCL_WAIT_S="60",
        CUDASPY_QUIET="1",
        TMPDIR=os.path.abspath(folder),
    )
    command = [
        f"{here}/../sim/with-sim",
        f"{build}/cudaspy",
        "run",
        "--no-report",
        f"--out={folder}/trace",
        "--",
        f"{build}/testapps/ranks",
        "--quick",
        "--csv",
        f"--ranks={planted['ranks']}",
        f"--gpus={planted['ranks']}",
        f"--steps={planted['steps']}",
        "--work-us=20000",
        "--bytes=2048",
        f"--buckets={planted['buckets']}",
        f"--in-turn={planted['in_turn']}",
    ]
    if planted["rank"] is not None:
        command.append("--straggler={rank}:{cause}:{every}:{ms}".format(**planted))
    if planted["overlap"]:
        command.append("--overlap")
    with open(f"{folder}/table.csv", "w") as table:
        return subprocess.run(command, env=environment, stdout=table, timeout=200).returncode


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    seed, folder = int(sys.argv[1]), sys.argv[2]
    planted = draw(seed, *(option in sys.argv[3:] for option in ("--clean", "--buckets", "--in-turn")))
    status = run(planted, folder)
    with open(f"{folder}/planted.json", "w") as file:
        json.dump(planted, file)
    print(json.dumps(planted))
    return status


if __name__ == "__main__":
    sys.exit(main())
