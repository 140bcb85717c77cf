"""What the disk has to have forgotten before anything is measured on it.

ext4 without a journal (many virtual machines and containers have it so) does not give out an inode
again within a minute of its deletion, and looks at each such one whenever a file is made near it:
after `make test` has removed its repositories, making a file takes ten times as long. A task of
ours makes twice as many files as the loop written by hand (its record), so the ratio would tell of
what was deleted before.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.bench.paired import seconds

_FILES = 200
_SOON = 50.0
"""Microseconds below which there is nothing to wait for; 300 just after a deletion, 20 else."""
_LONGEST = 150.0
"""Seconds after which it is the disk itself that is slow."""


def making_files(home: Path) -> float:
    """Say how many microseconds it takes to make a file; waits until that is no aftermath."""
    limit = time.monotonic() + _LONGEST
    os.sync()  # before, what was deleted shows only half
    while (took := _probe(home)) > _SOON and time.monotonic() < limit:
        os.sync()  # what is not on disk yet is remembered for longer
        time.sleep(5)
    return took


def _probe(home: Path) -> float:
    place = Path(tempfile.mkdtemp(dir=home))
    return statistics.median(seconds((place / str(i)).touch) for i in range(_FILES)) * 1e6
