"""The comparison of one branch with one record (theory and words: `lineage`).

The longest run of accepted commits from the base is the part that both have in common. What comes
after it is on top of the recorded head, or instead of it, or there is less than recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from git_batch.core import trailers
from git_batch.core.claims import Claim, Seen, Settled, claim_of, pretends, rendered, undo_of
from git_batch.core.ids import Oid
from git_batch.core.lineage import (
    BEYOND,
    CONTRADICTION,
    FOREIGN,
    FORGED,
    MERGE,
    MISSING,
    MOVED_BACK,
    NO_RECEIPT,
    REPEATED,
    REWRITTEN,
    UNREACHABLE,
    Drift,
    Ledger,
    accepts,
    back_to,
    is_pending,
    to_foreign,
    ways_out,
)

LISTED = 3
"""Names that a detail lists; the total is always said."""


class Comparison:
    """Compares one branch with one record; `drifts` is the result.

    Args:
        seen: the commits from the base (excluded) to the tip, oldest first.
        recorded: the same to the recorded head; None if its commits are not all here.
        events: the events that the commits' trailers name, None for what is no `settled` event;
            None leaves it at the receipts.
        live: a run may have gone on since the tip was read.
        claims: what each commit says of itself.
        tip, base: where the walk began and where it was to end.
        ends: the tip is a branch's, so it has to be where the record says.
    """

    def __init__(
        self,
        ledger: Ledger,
        seen: Sequence[Seen],
        recorded: Sequence[Seen] | None,
        events: Mapping[Oid, Settled | None] | None,
        *,
        claims: Sequence[Claim | None],
        tip: Oid,
        base: Oid,
        live: bool = False,
        ends: bool = True,
    ) -> None:
        self._l, self._seen, self._recorded, self._events = ledger, seen, recorded, events
        self._tip, self._base = tip, base
        self._claims = claims
        self._live, self._ends = live, ends
        self.drifts = tuple(self._compare())

    def _compare(self) -> Iterator[Drift]:
        seen, ledger = self._seen, self._l
        head = self._place_of_head()
        good = 0
        for i, commit in enumerate(seen):
            if not accepts(ledger, commit.oid):
                break
            good = i + 1
            yield from self._certified(i)
        yield from self._twice(good)
        rest = good
        if good < len(seen) and (head is None or head < good) and is_pending(ledger, seen[good]):
            rest = good + 1
        if head is not None:
            for i in range(rest, head + 1):
                if accepts(ledger, seen[i].oid):
                    yield from self._certified(i)
                else:
                    yield self._uncertified(seen[i])
            yield from self._on_top(max(rest, head + 1))
        elif rest == len(seen):
            yield from self._set_back()
        else:
            yield from self._rewritten(rest)

    def _place_of_head(self) -> int | None:
        """Find the recorded head among the commits; -1 if it is their base, None if it is not."""
        places = {c.oid: i for i, c in enumerate(self._seen)}
        rooted = self._seen[0].parents[:1] == (self._base,) if self._seen else False
        if self._l.head == self._base and (rooted or self._tip == self._base):
            return -1
        return places.get(self._l.head)

    def _certified(self, i: int) -> Iterator[Drift]:
        """Compare a commit that the record knows with what the record says about it."""
        commit, claim, ledger = self._seen[i], self._claims[i], self._l
        if len(commit.parents) != 1:
            yield self._drift(MERGE, f"{titled(commit)} has {len(commit.parents)} parents", commit)
        if commit.oid not in ledger.receipts or commit.oid in ledger.foreign:
            return
        if claim is None or claim.batch != ledger.batch:
            yield self._drift(
                CONTRADICTION,
                f"the record certifies {commit.oid}, which does not name batch '{ledger.batch}'",
                commit,
            )
            return
        if self._events is None:
            return
        event = self._events.get(claim.record)
        if event is None:
            said = f"{commit.oid} names the event {claim.record}, which is no settled event"
            yield self._drift(CONTRADICTION, said, commit)
            return
        wrong = _differences(commit, claim, event)
        if wrong:
            yield self._drift(
                CONTRADICTION,
                f"{commit.oid} of '{claim.task}' is not what its event {claim.record} decided: "
                + ", ".join(wrong),
                commit,
            )

    def _twice(self, good: int) -> Iterator[Drift]:
        """Find tasks with more than one commit that nobody took back."""
        holder: dict[str, Seen] = {}
        for i in range(good):
            commit, claim = self._seen[i], self._claims[i]
            for task in self._l.undone.get(commit.oid, ()):
                holder.pop(task, None)
            if claim is None or commit.oid not in self._l.receipts:
                continue
            if claim.task in holder:
                first = holder[claim.task]
                said = f"'{claim.task}' has two commits, {first.oid} and {commit.oid}"
                yield self._drift(REPEATED, said, commit)
            holder[claim.task] = commit

    def _uncertified(self, commit: Seen) -> Drift:
        return self._drift(
            NO_RECEIPT,
            f"{commit.oid} lies below the recorded head {self._l.head}, but the record has no "
            "receipt for it",
            commit,
        )

    def _set_back(self) -> Iterator[Drift]:
        if self._live or not self._ends:
            return
        ledger = self._l
        if self._recorded is None:
            yield self._absent()
            return
        yield Drift(
            MOVED_BACK,
            f"'{ledger.branch}' is at {self._tip}, behind the recorded {ledger.head}",
            self._tip,
            back_to(ledger.branch, ledger.head, self._tip),
        )

    def _on_top(self, start: int) -> Iterator[Drift]:
        """Name what lies on top of the recorded head."""
        plain: list[Seen] = []
        for i in range(start, len(self._seen)):
            commit = self._seen[i]
            if len(commit.parents) != 1:
                said = f"{titled(commit)} on top of {self._l.head} is a merge"
                yield self._drift(MERGE, said, commit)
            elif pretends(commit.message):
                yield self._beyond(commit, self._claims[i]) or self._pretender(
                    commit, self._claims[i]
                )
            else:
                plain.append(commit)
        if plain:
            many = f"{len(plain)} commits" if len(plain) > 1 else "a commit"
            yield Drift(
                FOREIGN,
                f"'{self._l.branch}' has {many} on top of the recorded {self._l.head}: "
                + _names([c.oid for c in plain]),
                plain[0].oid,
                to_foreign(self._l.status, self._l.branch, self._l.head, self._tip, self._l.batch),
            )

    def _beyond(self, commit: Seen, claim: Claim | None) -> Drift | None:
        """Name a commit that a later event than the record's newest may have made, as it says."""
        ledger, own = self._l, trailers.ours(commit.message) or {}
        if own.get(trailers.BATCH_ID) != ledger.batch or (claim and self._twin(claim)):
            return None
        if claim is None and undo_of(commit.message) is None:
            return None
        what = f"is of '{claim.task}'" if claim else f"takes back '{undo_of(commit.message)}'"
        said = f"{commit.oid} says it {what}, on top of {ledger.head}, where the record here ends"
        doubt = "the record is older than the branch, or the trailers are forged"
        return Drift(BEYOND, f"{said}: {doubt}", commit.oid, "git batch pull")

    def _pretender(self, commit: Seen, claim: Claim | None) -> Drift:
        """Name a commit that carries our trailers and that the record does not know."""
        if claim is None:
            return self._drift(FORGED, f"the trailers of {commit.oid} are not whole", commit)
        if claim.batch != self._l.batch:
            said = f"{commit.oid} names batch '{claim.batch}', not '{self._l.batch}'"
            return self._drift(FORGED, said, commit)
        twin = self._twin(claim)
        if twin is not None:
            said = f"{commit.oid} repeats the trailers of {twin.oid}, the commit of '{claim.task}'"
            return self._drift(REPEATED, said, commit)
        said = f"{commit.oid} says it is of '{claim.task}', but the record does not know it"
        return self._drift(FORGED, said, commit)

    def _twin(self, claim: Claim) -> Seen | None:
        """Find the recorded commit whose event a commit names."""
        for other in self._recorded or ():
            found = claim_of(other.message)[0]
            if found is not None and found.record == claim.record:
                return other
        return None

    def _rewritten(self, fork: int) -> Iterator[Drift]:
        """Name every commit behind the point where the branch leaves the recorded line."""
        if self._recorded is None:
            yield self._absent()
        known = {c.oid for c in self._seen[:fork]}
        lost = {
            claim.record: commit
            for commit in self._recorded or ()
            if commit.oid not in known and (claim := claim_of(commit.message)[0]) is not None
        }
        strangers: list[Seen] = []
        taken: set[Oid] = set()
        for i in range(fork, len(self._seen)):
            commit, claim = self._seen[i], self._claims[i]
            if not pretends(commit.message):
                strangers.append(commit)
                continue
            yield from self._strangers(strangers)
            strangers = []
            yield self._instead(commit, claim, lost, taken)
        yield from self._strangers(strangers)
        for record, commit in lost.items():
            if record not in taken:
                claim = claim_of(commit.message)[0]
                assert claim is not None
                yield self._drift(
                    UNREACHABLE,
                    f"the recorded commit {commit.oid} of '{claim.task}' is not on the branch",
                    commit,
                )

    def _instead(
        self, commit: Seen, claim: Claim | None, lost: Mapping[Oid, Seen], taken: set[Oid]
    ) -> Drift:
        twin = lost.get(claim.record) if claim is not None else None
        if claim is None or twin is None or claim.batch != self._l.batch:
            return self._pretender(commit, claim)
        if claim.record in taken:
            said = f"{commit.oid} is another commit of '{claim.task}'"
            return self._drift(REPEATED, said, commit)
        taken.add(claim.record)
        wrong = [
            name
            for name, a, b in (
                ("tree", commit.tree, twin.tree),
                ("parent", commit.parents, twin.parents),
                ("message", commit.message, twin.message),
            )
            if a != b
        ]
        what = ", ".join(wrong) or "author, committer or date"
        return self._drift(
            REWRITTEN,
            f"{commit.oid} takes the place of the recorded {twin.oid} of '{claim.task}'; "
            f"what differs: {what}",
            commit,
        )

    def _strangers(self, commits: Sequence[Seen]) -> Iterator[Drift]:
        if commits:
            many = f"{len(commits)} commits are" if len(commits) > 1 else "a commit is"
            said = f"{many} not the batch's: {_names([c.oid for c in commits])}"
            expected = f"; the record expects {self._l.head}"
            yield self._drift(REWRITTEN, said + expected, commits[0])

    def _absent(self) -> Drift:
        ledger = self._l
        return Drift(
            MISSING,
            f"the recorded head {ledger.head}, or a commit before it, is not in this repository",
            ledger.head,
            f"git fetch REMOTE {ledger.branch}",
        )

    def _drift(self, kind: str, detail: str, commit: Seen) -> Drift:
        # What the record knows, or what lies below its head, is still there at that head.
        stays = kind == NO_RECEIPT or (kind != UNREACHABLE and accepts(self._l, commit.oid))
        back, known = self._ends and not stays, self._recorded is not None
        return Drift(kind, detail, commit.oid, *ways_out(self._l, self._tip, back, known))


def _differences(commit: Seen, claim: Claim, event: Settled) -> list[str]:
    return [
        name
        for name, found, expected in (
            ("task", claim.task, event.task),
            ("tree", commit.tree, event.tree),
            ("parent", commit.parents, (event.parent,)),
            ("message", commit.message, rendered(claim.record, event)),
        )
        if found != expected
    ]


def titled(commit: Seen) -> str:
    """Name a commit by its id and subject."""
    subject = commit.message.split(b"\n", 1)[0].decode("utf-8", "replace")
    return f"{commit.oid} ('{subject[:60]}')"


def _names(oids: Sequence[str]) -> str:
    shown = ", ".join(oids[:LISTED])
    return shown if len(oids) <= LISTED else f"{shown} and {len(oids) - LISTED} more"
