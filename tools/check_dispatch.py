#!/usr/bin/env python3
"""The dispatch gate: instructions per call against the checked-in budget; 3 % more fails.

usage: check_dispatch.py [--update]     --update writes today's counts as the new budget
"""

import json
import pathlib
import sys

import count_instructions

BUDGET = pathlib.Path(__file__).with_name("dispatch_budget.json")
SLACK, SKIP = 1.03, 77


def main():
    if not count_instructions.available():
        print("valgrind is not installed: instructions were NOT counted")
        return SKIP
    counts = count_instructions.measure()
    key = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
    budgets = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    if "--update" in sys.argv:
        BUDGET.write_text(json.dumps(budgets | {key: counts}, indent=2) + "\n")
    elif key not in budgets:
        print(f"no budget for {key}: run tools/check_dispatch.py --update on it; counted {counts}")
        return SKIP
    over = 0
    for name, count in counts.items():
        for part, n in count.items():
            allowed = budgets.get(key, counts)[name][part]
            failed = n > allowed * SLACK
            over += failed
            print(f"{name:14} {part:10} {n:6} instructions, budget {allowed:6}  {'OVER' if failed else 'ok'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
