"""The one walk over a batch's branch, from base to tip, compared with the record.

`verdict` is what `git batch verify`, the hooks and `bless` go by. It reads through git processes
only (`objects`), so that a hook needs neither pygit2 nor click nor pydantic: give it
`Repository.git`, or on a server a `Git` of the bare repository that keeps `git.QUARANTINE`.

The order of the work: the record's header and newest event; the commits, whole; the receipts for
them; the events that they name; what each changed, in one `git diff-tree`. A process per kind of
question, never one per commit. Only a commit whose message is not plain is shown to git's readers
of trailers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from hashlib import sha256
from threading import Thread

from git_batch.core import lineage as kinds
from git_batch.core.claims import Claim, Seen, Settled, claim_of
from git_batch.core.comparison import Comparison
from git_batch.core.ids import BatchId, Oid
from git_batch.core.lineage import Drift, Ledger, Verdict, accepts
from git_batch.core.naming import few_of, path_text
from git_batch.core.planscopes import Bounds, Path, scopes, stray
from git_batch.core.values import replace
from git_batch.errors import BatchError, RecordError
from git_batch.repo import ledger as ledgers
from git_batch.repo.authority import with_signatures
from git_batch.repo.claimed import by_claims, read_alike
from git_batch.repo.git import Git
from git_batch.repo.objects import EMPTY_TREE, PLAIN, AbsentError, ObjectReader, seen_of
from git_batch.repo.status import ALL_SUBMODULES

__all__ = ["AUDIT", "Drift", "Verdict", "verdict"]

AUDIT = 5000
"""Records of up to so many events are audited before each push; `verify` audits all.

The audit looks for what contradicts itself *within* the record: that each commit is, byte for byte,
what its event decided; that no event changed what it may not; what the receipts say. A branch that
is not what its record says is told without it, since a receipt names its commit by its id.
"""
REBUILT = "the record was lost and rebuilt from trailers, which prove no checks and no confirmation"
_GITLINK, _NOTHING, _COLON = b"160000", b"000000", ord(":")


def verdict(
    git: Git,
    *,
    tip: Oid,
    batch: BatchId | None = None,
    record_tip: Oid | None = None,
    base: Oid | None = None,
    live: bool = False,
    ends: bool = True,
    audit: int = AUDIT,
    before_signers: Callable[[], None] | None = None,
) -> Verdict:
    """Compare the commits from base to tip with a batch's record.

    Args:
        tip: the commit that a branch is at, or that is pushed.
        batch: the batch that it must be; None takes whatever the record or the trailers say.
        record_tip: the commit that the record's ref is at; None: it is not here, and only what the
            trailers say can be looked at ("unknown" at best, "drift" if they contradict each
            other).
        base: None takes the record's; without a record, where the batch's commits begin.
        live: a run may have gone on since the tip was read, so the record may be ahead of it.
        ends: the tip is the branch's own, so it has to be where the record says.
        audit: how many events a record may have for it to be audited as well (`AUDIT`).
        before_signers: called before git runs what the configuration names to check a signature.

    Raises:
        GitError: git failed at something that should have worked, or an object is damaged.
    """
    with ObjectReader(git) as reader:
        try:
            if record_tip is None:
                return by_claims(git, reader, tip, base, batch)
            book = ledgers.read_book(reader, record_tip)
            left = _left(book.ledger, tip)
            if left is not None:
                return left
            walk = _Walk(git, reader, tip, book, base)
            found = walk.verdict(batch, live=live, ends=ends, audit=audit)
            return with_signatures(git, found, record_tip, walk.signed, before_signers)
        except (AbsentError, RecordError) as error:
            return Verdict("unknown", batch=batch, reason=error.message)


def _left(ledger: Ledger, tip: Oid) -> Verdict | None:
    """Say that a branch is on the line that a rebase left; there is nothing to walk then."""
    former = ledger.former
    drift = kinds.before_rebase(ledger.branch, tip, ledger.head, ledger.base, former)
    if drift is None:
        return None
    return Verdict("drift", (drift,), ledger.batch, certified=True, batch_status=ledger.status)


def _line(
    reader: ObjectReader, tip: Oid, recorded: Oid, base: Oid | None
) -> tuple[Oid, Sequence[Seen], int]:
    """Read the commits to compare: of a range only what is not below the recorded base.

    Returns:
        What they begin on, they, and how many of the range lie below and are no batch's.
    """
    seen = reader.chain(tip, base or recorded)
    below = next((i + 1 for i, commit in enumerate(seen) if commit.oid == recorded), 0)
    return (recorded if below or base is None else base), seen[below:], below


class _Walk:
    """One comparison with a record."""

    def __init__(
        self, git: Git, reader: ObjectReader, tip: Oid, book: ledgers.Book, base: Oid | None
    ) -> None:
        self._git, self._reader, self._tip, self._book = git, reader, tip, book
        self._base, self._seen, self._below = _line(reader, tip, book.ledger.base, base)
        self._claims = [claim_of(c.message) for c in self._seen]
        self._ledger = self._open()

    @property
    def signed(self) -> bool:
        """Whether the authorization in force says that it is signed."""
        return self._ledger.signed

    def _open(self) -> Ledger:
        """Look up which of the commits the record knows, and how."""
        ledger = ledgers.with_receipts(self._reader, self._book, [c.oid for c in self._seen])
        pairs = zip(self._seen, self._claims, strict=True)
        if any(
            b"Batch-Undo" in c.message or (claim is not None and not accepts(ledger, c.oid))
            for c, (claim, _) in pairs
        ):
            more = ledgers.decisions(self._reader, self._book)
            ledger = replace(ledger, undone=more.undone, rebuilt=more.rebuilt)
        return ledger

    def verdict(self, batch: BatchId | None, *, live: bool, ends: bool, audit: int) -> Verdict:
        """Say what came of it."""
        ledger, seen = self._ledger, self._seen
        known = [i for i, c in enumerate(seen) if c.oid in ledger.receipts]
        rebuilt = [i for i, c in enumerate(seen) if c.oid in ledger.rebuilt]
        lost = [i for i in rebuilt if (c := self._claim(i)) and c.plan != ledger.plan]
        ours = sorted([*known, *rebuilt])
        changes = _Changes(self._git, self._trees(known if lost else ours))  # git works beside us
        drifts = list(
            Comparison(
                ledger,
                seen,
                self._recorded(),
                self._events(known) if self._book.steps <= audit else None,
                claims=[claim for claim, _ in self._claims],
                tip=self._tip,
                base=self._base,
                live=live,
                ends=ends,
            ).drifts
        )
        if batch is not None and ledger.batch != batch:
            said = f"the record is of batch '{ledger.batch}', not '{batch}'"
            drifts.append(Drift(kinds.RECORD_DAMAGED, said, None, f"git batch log {batch}"))
        drifts += read_alike(self._git, [seen[i] for i in known if not self._claims[i][1]])
        drifts += self._in_scope(changes.of())
        if self._book.steps <= audit:
            drifts += self._audited(known)
        undone = self._undone({*ours})
        return Verdict(
            "drift" if drifts else "unknown" if lost else "whole",
            self._in_order(drifts),
            ledger.batch,
            not rebuilt,
            ledger.status,
            REBUILT if rebuilt else _said_below(self._below, self._base),
            commits=len(seen),
            tasks=len(ours) - undone,
            undone=undone,
        )

    def _in_order(self, drifts: Sequence[Drift]) -> tuple[Drift, ...]:
        """Sort what is wrong as the commits come, what is about none of them first."""
        places = {commit.oid: i for i, commit in enumerate(self._seen)}
        last = len(places)
        return tuple(sorted(drifts, key=lambda d: places.get(d.commit, last) if d.commit else -1))

    def _undone(self, ours: Set[int]) -> int:
        """Count those of the tasks' commits that are taken back."""
        if not self._ledger.undone:
            return 0
        claims = (self._claim(i) if i in ours else None for i in range(len(self._seen)))
        line = ((c.oid, claim and claim.task) for c, claim in zip(self._seen, claims, strict=True))
        return kinds.taken_back(self._ledger, line)

    def _claim(self, i: int) -> Claim | None:
        return self._claims[i][0]

    def _recorded(self) -> Sequence[Seen] | None:
        """Read the line that the record expects; None if it is not all here."""
        ledger = self._ledger
        if self._seen and self._seen[-1].oid == ledger.head:
            return self._seen
        try:
            return self._reader.chain(ledger.head, ledger.base)
        except AbsentError:
            return None

    def _events(self, known: Sequence[int]) -> dict[Oid, Settled | None]:
        """Read the events that certified commits name."""
        wanted = [claim.record for i in known if (claim := self._claim(i)) is not None]
        found: dict[Oid, Settled | None] = {}
        for name, answer in self._reader.many(wanted):
            oid = Oid(name)
            found[oid] = ledgers.read_settled(seen_of(oid, answer))
        return found

    def _in_scope(self, changes: Mapping[int, Sequence[Path]]) -> Iterator[Drift]:
        """Compare what each task's commit changed with the plan that was in force for it."""
        plans: dict[str, Mapping[str, Bounds] | None] = {}
        for i, paths in changes.items():
            commit, claim = self._seen[i], self._claim(i)
            if claim is None:
                continue
            if claim.plan not in plans:
                plans[claim.plan] = self._plan(claim)
            bounds = (plans[claim.plan] or {}).get(claim.task)
            if bounds is None:
                said = f"{commit.oid} names the plan {claim.plan}, which is not the record's"
                if plans[claim.plan] is not None:
                    said = f"{commit.oid} is of '{claim.task}', which its plan does not have"
                yield Drift(kinds.NOT_IN_FORCE, said, commit.oid, f"git show -s {commit.oid}")
                continue
            wrong = list(stray(bounds, paths))
            if wrong:
                yield _out_of_scope(commit, claim, wrong)

    def _trees(self, known: Sequence[int]) -> dict[int, tuple[Oid, Oid]]:
        """Name for each commit the tree before it and its own."""
        seen, before = self._seen, EMPTY_TREE
        if seen and seen[0].parents:
            before = self._reader.commit(seen[0].parents[0]).tree
        return {i: (seen[i - 1].tree if i else before, seen[i].tree) for i in known}

    def _plan(self, claim: Claim) -> Mapping[str, Bounds] | None:
        """Read the plan that a commit names; None if the record did not have it then."""
        where = self._book.event if claim.plan == self._ledger.plan else claim.record
        found = self._reader.find(f"{where}:plan.toml")
        if found is None or f"sha256:{sha256(found.data).hexdigest()}" != claim.plan:
            return None
        return scopes(found.data)

    def _audited(self, known: Sequence[int]) -> Iterator[Drift]:
        """Look at the record itself: its chain of events, and its receipts' words."""
        chain, drifts = ledgers.audit(self._reader, self._book)
        yield from drifts
        for i in known:
            commit, claim = self._seen[i], self._claim(i)
            if claim is not None and claim.record not in chain:
                said = f"{commit.oid} names {claim.record}, which is no event of this record"
                yield Drift(kinds.CONTRADICTION, said, commit.oid, f"git show {claim.record}")
        oids = [self._seen[i].oid for i in known]
        for oid in ledgers.false_receipts(self._reader, self._book, oids):
            said = f"the receipt of {oid} certifies another commit"
            yield Drift(kinds.FALSE_RECEIPT, said, oid, f"git notes --ref={self._ref} show {oid}")

    @property
    def _ref(self) -> str:
        return f"batch/{self._ledger.batch}"


def _said_below(below: int, base: Oid) -> str:
    """Say which commits of a range no record is about; nothing if there are none."""
    if not below:
        return ""
    many = "a commit" if below == 1 else f"{below} commits"
    return f"{many} of the range that the batch began on, up to {base}"


def _out_of_scope(commit: Seen, claim: Claim, wrong: Sequence[tuple[bytes, str]]) -> Drift:
    named = few_of([f"'{path_text(path)}' ({why})" for path, why in wrong])
    return Drift(
        kinds.OUT_OF_SCOPE,
        f"{commit.oid} of '{claim.task}' changes {named}",
        commit.oid,
        f"git show --stat {commit.oid}",
    )


class _Changes:
    """What differs between pairs of trees; git is asked at once, and answers when it is ready."""

    def __init__(self, git: Git, pairs: Mapping[int, tuple[Oid, Oid]]) -> None:
        self._git, self._pairs = git, pairs
        self._output: bytes | BatchError = b""
        self._thread = Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        # Old and new names, no guess at renames, no attributes, no program of the person's.
        args = ["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff"]
        args.append(ALL_SUBMODULES)
        lines = "".join(f"{old} {new}\n" for old, new in dict.fromkeys(self._pairs.values()))
        try:
            self._output = self._git.run(args, input=lines.encode(), env=PLAIN) if lines else b""
        except BatchError as error:
            self._output = error

    def of(self) -> Mapping[int, Sequence[Path]]:
        """Give the paths by the pairs' keys.

        Raises:
            GitError: a tree is missing, or git failed.
        """
        self._thread.join()
        if isinstance(self._output, BatchError):
            raise self._output
        found: dict[tuple[Oid, Oid], list[Path]] = {pair: [] for pair in self._pairs.values()}
        out, at = self._output, 0
        here: list[Path] = []
        while at < len(out):
            if out[at] != _COLON:  # the line that names the two trees
                here = found[Oid(out[at : at + 40].decode()), Oid(out[at + 41 : at + 81].decode())]
                at += 82
                continue
            name = out.index(b"\0", at) + 1
            end = out.index(b"\0", name)
            appeared = out[at + 8 : at + 14] == _GITLINK and out[at + 1 : at + 7] == _NOTHING
            here.append((out[name:end], appeared))
            at = end + 1
        return {i: found[pair] for i, pair in self._pairs.items()}
