"""How many examples Hypothesis tries of a property, and which.

`make test` tries the same few each time, so what passed for the writer of a change passes in CI.
`make test-long` tries many times as many, and others each time.
"""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import HealthCheck, settings

SAME = "same"
SEARCH = "search"
TIMES = 50

settings.register_profile(SAME, deadline=None, derandomize=True, database=None)
settings.register_profile(
    SEARCH, settings.get_profile(SAME), derandomize=False, max_examples=100 * TIMES
)


def tries(count: int, *, allow: Collection[HealthCheck] = ()) -> settings:
    """Give the settings for a property that `make test` tries a number of times."""
    searching = settings.get_current_profile_name() == SEARCH
    return settings(max_examples=count * (TIMES if searching else 1), suppress_health_check=allow)
