#!/usr/bin/env python3
"""tests/e2e/checks/compare_ranks.py TRACES.json DIGESTS.json: do the report of a job's traces and that of its digests say the same of its ranks?

Both name the same rank, or none; it held the others up by as much, and waited for as long, but for what clocks leave open: the
most that timers of GPUs are off, for each operation. Prints who is named and the time in ms. Status 1, and a line for each
difference."""

import json
import sys


def named_by_traces(report):
    """The rank, and what the others waited for it."""
    for finding in report["findings"]:
        if finding["id"] in ("straggler-rank", "slow-gpu", "uneven-work") and finding["what"].startswith("rank "):
            rank = int(finding["what"].split()[1])
            return rank, next(r["late_ns"] for r in report["ranks"] if r["rank"] == rank)
    return None, 0


def named_by_digests(report):
    """The same: of a GPU, the rank that has it."""
    if not report["differences"]:
        return None, 0
    first = report["differences"][0]
    rank = first["rank"]
    if rank is None:
        rank = next(r["rank"] for r in report["ranks"] if r["gpu"] == first["gpu"])
    return rank, first["cost_ns"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        traces = json.load(file)
    with open(sys.argv[2]) as file:
        digests = json.load(file)
    mistakes = []
    kinds = {f["id"] for f in traces["findings"]} & {"straggler-rank", "slow-gpu", "uneven-work"}
    error_ns = max(r["align_error_ns"] for r in traces["ranks"])
    operations = max(r["operations"] for r in traces["ranks"])
    allowed_ns = (1000 + 2 * error_ns) * operations
    if len(digests["differences"]) > 1:
        mistakes.append(f"digests name several: {[d['what'] for d in digests['differences']]}")
    rank, ns = named_by_traces(traces)
    other, other_ns = named_by_digests(digests)
    if rank != other:
        mistakes.append(f"named by the traces: {rank} ({ns / 1e6} ms), by the digests: {other} ({other_ns / 1e6} ms)")
    elif abs(ns - other_ns) > allowed_ns:
        mistakes.append(f"rank {rank} costs {ns / 1e6} ms by the traces, {other_ns / 1e6} ms by the digests")
    cause = digests["differences"][0]["cause"] if digests["differences"] else None
    kind = {"slow-gpu": "slow-gpu", "gpu-work": "uneven-work"}.get(cause, "straggler-rank")
    if rank is not None and rank == other and kind not in kinds:
        mistakes.append(f"{kinds} by the traces, {cause} by the digests")
    of_digests = {r["rank"]: r for r in digests["ranks"]}
    for of_traces in traces["ranks"]:
        for key, mine in (("late_ns", "late_ns"), ("wait_ns", "waited_ns")):
            a, b = of_traces[key], of_digests[of_traces["rank"]][mine]
            if abs(a - b) > allowed_ns:
                mistakes.append(f"rank {of_traces['rank']}: {key} {a / 1e6} ms in the traces, {b / 1e6} ms in the digests")
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    print("nobody" if rank is None else f"rank {rank} {ns / 1e6:.1f} ms {other_ns / 1e6:.1f} ms")
    return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main())
