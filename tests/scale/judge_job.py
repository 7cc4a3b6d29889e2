#!/usr/bin/env python3
"""tests/scale/judge_job.py PLANTED.json REPORT.json ...: does the report of each made job (gendigest) name exactly whom it should?

What is said to differ from the rest has to be what was planted: rank, host or GPU, and the cause; nobody else, and nothing
of a clean job. Slow steps are hiccups: each is a rank's, which the report names; of few ranks all may have one at once.
Status 1, and a line for each mistake."""

import json
import sys


def judge(planted_file, report_file):
    with open(planted_file) as file:
        planted = json.load(file)["planted"]
    with open(report_file) as file:
        report = json.load(file)
    wanted = {(p["about"], p["who"], p["cause"]) for p in planted}
    found = [(d["about"], d["who"], d["cause"]) for d in report["differences"]]
    mistakes = [f"not named: {who}" for who in wanted - set(found)]
    mistakes += [f"named, and nothing is wrong: {who}" for who in set(found) - wanted]
    if len(found) != len(set(found)):
        mistakes.append(f"named twice: {found}")
    for step in report["slow_steps"] if report["job"]["ranks"] >= 8 else []:
        if step["last"] is None or step["late_ns"] * 2 < step["period_ns"] - step["typical_ns"]:
            mistakes.append(f"a slow step without a reason: {step}")
    for mistake in mistakes:
        print(f"{planted_file}: {mistake}", file=sys.stderr)
    return bool(mistakes)


def main():
    files = sys.argv[1:]
    if not files or len(files) % 2:
        sys.exit(__doc__)
    return any([judge(*pair) for pair in zip(files[::2], files[1::2])])


if __name__ == "__main__":
    sys.exit(main())
