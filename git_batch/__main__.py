"""The console script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `git batch` and end with its exit status."""
    from git_batch.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
