"""Numbers as options take them."""

from __future__ import annotations

import click


class Count(click.IntRange):
    """A whole number from 1 up; what is none is said to be no number, not no range."""

    name = "whole number"

    def __init__(self) -> None:
        """Begin at 1."""
        super().__init__(min=1)
