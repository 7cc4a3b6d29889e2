#!/usr/bin/python3
"""tests/e2e/checks/cut_ranks.py FOLDER SEED

The job recorded in FOLDER/trace (ranks_scenario.py), and the same recording with some of one rank's records left out
(cut_trace.py): as by a cost window, a dormant time, losses, the end of that rank. What is missing is unknown: no report
on a cut recording has a finding that the whole one has not. Nor do ranks disagree in the same job recorded once more with
cost windows or in a window (FOLDER/again.NAME); who is late there is another matter, for it runs beside other load. Prints how many reports were compared, and what is wrong."""
import glob
import json
import os
import random
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
tool = os.path.join(os.environ["CUDASPY_BUILD"], "cudaspy")
KINDS = ("counting", "closed", "lost", "killed", "cut")


def findings(folder):
    command = [tool, "report", "--format=json", folder]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return report["findings"]


def place(finding):
    return (finding["function"], finding["file"], finding["line"]) if finding["line"] else finding["id"]


def cut(traces, victims, target, kind, chance):
    """The job, with such cuts into its ranks: each victim has one of its own."""
    shutil.rmtree(target, ignore_errors=True)
    os.mkdir(target)
    for trace in traces:
        name = os.path.basename(trace)
        if name not in victims:
            os.symlink(os.path.abspath(trace), os.path.join(target, name))
            continue
        begin = chance.uniform(0.1, 0.95)
        end = min(begin + chance.choice((0.003, 0.02, 0.1)), 0.99)
        count = chance.choice((0, 1, 1, 2))
        command = [f"{here}/../cut_trace.py", trace, os.path.join(target, name), kind, str(begin), str(end), str(count)]
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)


def show_new(said, known, planted, where):
    """Those that the whole recording has not. -> how many"""
    wrong = 0
    for finding in said:
        # What was planted is true, also where the whole recording has it just below a threshold.
        true = planted is not None and finding["what"].startswith(f"rank {planted} ")
        # So is what is said of the same call of the program under another name: of a few steps less is known.
        if finding["severity"] != "minor" and finding["id"] not in known and place(finding) not in known and not true:
            print(f"{where}: {finding['id']}: {finding['what'][:300]}")
            wrong += 1
    return wrong


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    chance = random.Random(seed)
    traces = sorted(entry.path for entry in os.scandir(f"{folder}/trace") if entry.name.endswith(".cudaspy"))
    ranks = [os.path.basename(trace) for trace in traces if ".rank" in trace]
    all_found = findings(f"{folder}/trace")
    whole = {finding["id"] for finding in all_found} | {place(finding) for finding in all_found}
    with open(f"{folder}/planted.json") as file:
        planted = json.load(file)["rank"]
    wrong = 0
    for kind in KINDS:
        # Cost windows come to all ranks at one time, but leave out other operations in each.
        victims = ranks if kind == "counting" else [chance.choice(ranks)]
        cut(traces, victims, f"{folder}/cut", kind, chance)
        wrong += show_new(findings(f"{folder}/cut"), whole, planted, f"seed {seed}, {kind}")
    again = sorted(glob.glob(f"{folder}/again.*"))
    for other in again:
        said = [finding for finding in findings(f"{other}/trace") if finding["id"] == "collective-order"]
        wrong += show_new(said, whole, planted, f"seed {seed}, {os.path.basename(other)}")
    print(f"seed {seed}: {len(KINDS) + len(again)} compared, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
