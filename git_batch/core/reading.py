"""Reading the record from its tip: the newest event, what it repeats, and the header.

`record` writes all of it and reads the rest. Apart from it because this much answers "where does
the batch stand", and whoever asks that must not pay for what only a run needs.

Format 1. A reader refuses a higher one by name instead of guessing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from git_batch.core import trailers
from git_batch.core.claims import Seen
from git_batch.core.codec import CodecError, decode, shown
from git_batch.core.ids import BATCH_ID, BatchId, Oid, slug_of
from git_batch.core.model import InFlight
from git_batch.core.tip import Header, Tip, Totals
from git_batch.core.toml import loads
from git_batch.core.values import replace
from git_batch.errors import RecordError

T = TypeVar("T")

FORMAT = 1


def own_id(flight: InFlight, event: Oid) -> InFlight:
    """Fill in the id of the event itself, which its own text can't hold."""
    settled = event if flight.settled == "" else flight.settled
    return replace(flight, enrolled=flight.enrolled or event, settled=settled)


def parse_tip(event: Seen) -> Tip:
    """Read what an event repeats about the batch.

    Raises:
        RecordError: it is not whole, or was written by a newer git-batch.
    """
    values, table = event_tables(event.message)
    tip = decoded(lambda: Tip(**repeated(values, table)))
    flight = tip.in_flight
    return replace(tip, in_flight=own_id(flight, event.oid)) if flight else tip


def event_tables(message: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Read the trailers and the body of an event.

    Raises:
        RecordError: it is not whole, or was written by a newer git-batch.
    """
    values = dict(trailers.block(message))
    version = values.get("Batch-Format", "")
    if re.fullmatch(r"[0-9]{1,9}", version):
        refuse_newer(int(version))
    if version != str(FORMAT) or "Batch-Event" not in values:
        raise RecordError("an event of the record can't be read: its trailers are not whole")
    return values, toml(message.split(b"\n\n", 1)[1].rsplit(b"\n\n", 1)[0], "an event")


def repeated(values: dict[str, str], table: dict[str, Any]) -> dict[str, Any]:
    """Give the fields of a `Tip`; errors as `decoded` expects them."""
    flight = table.get("in_flight")
    return {
        "step": _number(values, "Batch-Step"),
        "totals": decode(Totals, table["totals"]),
        "in_flight": None if flight is None else decode(InFlight, flight),
        "runner": values.get("Batch-Runner", ""),
    }


def _number(values: dict[str, str], key: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", values[key]):
        raise ValueError(f"'{key}' is not a number")
    return int(values[key])


def decoded(build: Callable[[], T], what: str = "an event") -> T:
    """Build a value from a table; RecordError says what is wrong with it."""
    try:
        return build()
    except (CodecError, KeyError, ValueError) as error:
        raise RecordError(f"{what} of the record can't be read: {error}") from None


def parse_header(blob: bytes, of: BatchId | None = None) -> Header:
    """Read a header.

    Args:
        of: the batch whose record it is in, where that is known.

    Raises:
        RecordError: it can't be read, or names another batch: refs and files are called by that.
    """
    table = toml(blob, "the header")
    version = table.get("format")
    if isinstance(version, int):
        refuse_newer(version)
    header = decoded(lambda: decode(Header, table), "the header")
    named = header.batch_id
    if not BATCH_ID.match(named) or header.slug != slug_of(named) or of not in (None, named):
        other = f"not '{of}'" if of else "no batch"
        raise RecordError(
            "the header of the record can't be right: "
            f"batch_id: {shown(named)}, whose slug is {shown(header.slug)}, is {other}"
        )
    return header


def toml(blob: bytes, what: str) -> dict[str, Any]:
    """Read TOML; RecordError says what of the record is none."""
    try:
        return loads(blob.decode("utf-8"))
    except ValueError as error:  # that it is not UTF-8 is one
        raise RecordError(f"{what} of the record is not TOML: {error}") from None


def refuse_newer(version: int) -> None:
    """Refuse a format that only a later git-batch knows.

    Raises:
        RecordError: it is one.
    """
    if version > FORMAT:
        raise RecordError(
            f"the record has format {version}, this git-batch reads up to {FORMAT}",
            "install a newer git-batch-runner",
        )
