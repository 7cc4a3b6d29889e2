#!/usr/bin/env python3
"""tests/scale/judge_job.py PLANTED.json REPORT.json: does the report of a made job (gendigest) name exactly whom it should?

What is said to differ from the rest has to be what was planted: rank, host or GPU, and the cause; nobody else, and nothing
of a clean job. Slow steps are hiccups: each is a rank's, which the report names; of few ranks all may have one at once.
Status 1, and a line for each mistake."""

import json
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        planted = json.load(file)["planted"]
    with open(sys.argv[2]) as file:
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
        print(f"{sys.argv[1]}: {mistake}", file=sys.stderr)
    return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main())
