"""The conformance run that CI makes: every op, at most FAST_SAMPLES samples per variant and dtype (forms.py), spread evenly.

`make compat` runs all samples; `pytest --few` one, in two dtypes. Worker processes, so that a crash is one op's failure.
"""

import os

from .run import again_in_full, compare, describe, judge, read_gaps


def test_ops_equal_pytorch_except_known_gaps():
    jobs, gaps = min(os.cpu_count() or 1, 4), read_gaps()
    answers = compare([], jobs, ["--fast"])
    answers = again_in_full(answers, gaps, jobs)
    assert set(gaps) <= set(answers), f"gaps.txt names what is not an op: {sorted(set(gaps) - set(answers))}"
    wrong = judge(answers, gaps)
    failed = [n for n in answers if f"{n} fails and is not in gaps.txt" in wrong]
    alone = [f'to run them alone: make compat OPS="{" ".join(failed)}"'] if failed else []
    assert not wrong, "\n".join(wrong + [describe(n, answers[n], 3) for n in failed] + alone)
