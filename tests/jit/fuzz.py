"""Random programs, eager and compiled:
python -m tests.jit.fuzz [--programs 20000] [--first SEED] [--large] [--sizes] [--cuda] [--write FOLDER] [--most N]

Prints every program that fails, made as small as possible, as Python source, and what was tried in the end.
"""

import argparse
import pathlib
import sys
import time
import warnings

import lucid
from tests.jit.programs import Program


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--write", type=pathlib.Path, help="a folder for programs that fail, a file each")
    parser.add_argument("--most", type=int, default=20, help="stop after so many failures")
    parser.add_argument("--large", action="store_true", help="small programs use memory as large ones do")
    parser.add_argument("--sizes", action="store_true", help="the first dimension of the inputs changes")
    parser.add_argument("--cuda", action="store_true", help="on a CUDA device, or its emulation, as captured graphs")
    chosen = parser.parse_args()
    if chosen.large:
        lucid._C._plan_limits(0, 0, 0, 0)
    warnings.simplefilter("ignore")
    count, failures, start = dict(programs=0, gradients=0, answered=0, eager=0, why={}), 0, time.time()
    for seed in range(chosen.first, chosen.first + chosen.programs):
        program = Program(seed, sizes=chosen.sizes, cuda=chosen.cuda)
        what = program.failure(count)
        if not what:
            continue
        failures += 1
        small = program.smaller()
        text = small.report(small.failure())
        print(text, flush=True)
        if chosen.write:
            chosen.write.mkdir(parents=True, exist_ok=True)
            (chosen.write / f"{seed}.py").write_text(text)
        if failures == chosen.most:
            break
    why = count.pop("why")
    print(f"{failures} failures; {count}; {time.time() - start:.0f} s")
    for reason, times in sorted(why.items(), key=lambda item: -item[1])[:20]:
        print(f"  {times:6d} ran eagerly: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
