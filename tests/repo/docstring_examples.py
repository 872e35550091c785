"""How many examples a hypothesis test draws, and which: the same ones in every run, so that a change is judged by itself.
LUCID_EXPLORE=20 draws new ones, twenty times as many."""

import os

from hypothesis import settings

EXPLORE = int(os.environ.get("LUCID_EXPLORE") or 0)


def examples(count, **options):
    return settings(max_examples=count * (EXPLORE or 1), derandomize=not EXPLORE, database=None, deadline=None, **options)
