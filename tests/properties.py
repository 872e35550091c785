"""How many examples a property test (hypothesis) draws, and which: the same ones in every run, so that a change is judged by
itself. LUCID_EXPLORE=20 draws new ones, twenty times as many; `pytest --few` draws at most 20."""

import os

from hypothesis import HealthCheck, settings

from tests import few

EXPLORE = int(os.environ.get("LUCID_EXPLORE") or 0)


def examples(count, **options):
    count = count * EXPLORE or (min(count, 20) if few.wanted() else count)
    if few.wanted():  # of so few examples, a streak of unsuitable ones says nothing
        options.setdefault("suppress_health_check", [HealthCheck.filter_too_much])
    return settings(max_examples=count, derandomize=not EXPLORE, database=None, deadline=None, **options)
