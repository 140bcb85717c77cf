"""The record of one batch: a notes ref whose first-parent history has one commit per event.

`Journal` holds the newest state beside the ref and is the only writer of it. An event is appended
in three steps: fold it into the state, write its commit (and, where its kind may change it, the
tree), publish by moving the ref. Events that nothing irrevocable depends on are published with
the next one that matters (`events.PIVOTAL`) or by `publish`; some are not even written until then,
or until a command has been started that takes its time anyway (`events.AT_LEISURE`, `write`).

The tree is a valid notes tree with one level of fan-out, besides header, plan, intents and the
trees that must survive gc (storage.md). It is always built from the tree of our own newest event:
what a person's `git notes` put on top stays in the history and its view is put right. Somebody
who renewed the authorization or asked for a stop meanwhile is folded in; anything else that moved
the ref is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from git_batch.core import entries, reading, record
from git_batch.core import events as ev
from git_batch.core.chain import is_event, ref_name
from git_batch.core.ids import BatchId, Oid
from git_batch.core.machine import Machine, found, reopen, unheeded
from git_batch.core.model import BatchState, Plan
from git_batch.core.values import replace
from git_batch.errors import StaleError
from git_batch.repo import commits, trust
from git_batch.repo.notestree import NotesTree
from git_batch.repo.recordread import Newest, read
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository

_APPENDED_MOST = 1000
"""How many events that others appended are folded in before that is taken for another run."""


class _Place(Struct, frozen=True):
    """The newest event that has a commit: the state it led to, its number, its commit, its tree."""

    state: BatchState | None
    step: int
    tip: Oid | None
    tree: Oid | None


class _Foreseen(Struct, frozen=True):
    """An event that was written before it happened, where that was, and where it leads."""

    event: ev.Event
    before: _Place
    after: _Place


class Journal:
    """Reads and appends the record of one batch.

    Attributes:
        state: the batch as of the newest event, published or not.
        machine: the rules of the plan in force.
    """

    def __init__(
        self,
        repo: Repository,
        refs: Refs,
        machine: Machine,
        state: BatchState | None,
        *,
        who: commits.Idents,
        runner: str,
        tree: NotesTree,
        at: Newest | None = None,
    ) -> None:
        self._repo, self._refs, self._who, self._runner = repo, refs, who, runner
        self.machine = machine
        self._state = state
        self._tree = tree
        self._step = at.tip.step if at else 0
        self._tip = self._published = at.ref_tip if at else None
        self._base_state, self._base_step, self._base_tree = state, self._step, tree.oid
        self._pending: list[ev.Event] = []
        self._unwritten: list[tuple[ev.Event, BatchState]] = []
        self._new_plan: Plan | None = None
        self._foreseen: _Foreseen | None = None

    @property
    def state(self) -> BatchState:
        """The batch as of its newest event."""
        assert self._state is not None
        return self._state

    @property
    def recorded(self) -> BatchState:
        """The batch as of the newest event that is published: a crash can't take it back."""
        assert self._base_state is not None
        return self._base_state

    @property
    def step(self) -> int:
        """The number of the newest event that is published: a crash can't take it back."""
        return self._base_step

    @property
    def published(self) -> bool:
        """Whether the ref is at the newest event."""
        return not self._pending

    @property
    def tip(self) -> Oid | None:
        """The newest commit that was written of an event, published or not."""
        return self._tip

    @classmethod
    def create(
        cls,
        repo: Repository,
        refs: Refs,
        plan: Plan,
        *,
        who: commits.Idents,
        runner: str,
        instead_of: Oid | None = None,
    ) -> Journal:
        """Prepare a record, perhaps in place of the unusable one at `instead_of`.

        Nothing is written before its first event.
        """
        tree = NotesTree(repo, None)
        tree.write_plan(plan)
        made = cls(repo, refs, Machine(plan), None, who=who, runner=runner, tree=tree)
        made._published = instead_of
        return made

    @classmethod
    def load(
        cls, repo: Repository, refs: Refs, batch: BatchId, *, who: commits.Idents, runner: str
    ) -> Journal:
        """Open the record of a batch.

        Raises:
            RecordError: it is missing, unreadable, contradicts itself, or was put back.
        """
        at, plan, state = read(repo, refs, batch)
        trust.load(repo, batch).refuse_rollback(batch, at.tip.step, state.authorization)
        trust.seen(repo, batch, at.tip.step, state.authorization)
        tree = NotesTree(repo, at.tree)
        return cls(repo, refs, Machine(plan), state, who=who, runner=runner, tree=tree, at=at)

    def append(self, event: ev.Event) -> BatchState:
        """Record an event and give the state it leads to; durable if it is pivotal.

        Raises:
            StaleError: somebody else changed the record in a way that can't be folded in.
        """
        if not self._come_true(event):
            self._fold(event)
        self._pending.append(event)
        if type(event) not in ev.AT_LEISURE:
            self.write()
        if type(event) in ev.PIVOTAL:
            self.publish()
        return self.state

    def write(self) -> None:
        """Write the commits of the events that have none yet; no ref moves."""
        while self._unwritten:
            self._write(*self._unwritten[0])
            del self._unwritten[0]

    def foresee(self, event: ev.Event) -> None:
        """Write the commit of an event that will come next if all goes well, and no more.

        If it is appended then, that is done; if not, what was written is named by nothing.
        """
        self.write()
        before = self._place()
        try:
            self._fold(event)
            self.write()
            self._foreseen = _Foreseen(event, before, self._place())
        finally:
            self._unwritten.clear()
            self._go_to(before)

    def publish(self, *, durable: bool = True, beside: Callable[[], object] | None = None) -> bool:
        """Move the ref to the newest event, if it is not there yet.

        Args:
            durable: False where another swap follows at once (see `Refs.swap`).
            beside: what can be done while the disk is waited for; done for each try, or not at all.

        Returns:
            Whether there was anything to publish; then all written before is on disk.
        """
        waiting = bool(self._pending)
        while self._pending:
            self.write()
            assert self._tip is not None
            why = record.subject(self._pending[-1])
            name = ref_name(self.state.batch_id)
            try:
                self._refs.swap(
                    name, self._published, self._tip, why, durable=durable, beside=beside
                )
            except StaleError:
                self._rebase()
                continue
            self._mark()
        return waiting

    def refresh(self) -> BatchState:
        """Fold in what another process appended meanwhile (a renewal, a wish to stop)."""
        if not self._pending and self._state is not None:
            name = ref_name(self.state.batch_id)
            if self._refs.read(name) != self._published:
                self._rebase()
        return self.state

    def take_up(self, now: datetime) -> None:
        """Go on with a batch that was read: nobody works on it, and a stop is over."""
        end = unheeded(self.state, now)
        if end is not None:
            self.append(end)
        self._state = self._base_state = reopen(found(self.state))

    def renew_plan(self, plan: Plan) -> None:
        """Take another plan into force; the next event must be its `Authorized`."""
        self.machine = Machine(plan)
        self._new_plan = plan
        self._tree.write_plan(plan)

    def _come_true(self, event: ev.Event) -> bool:
        """Take over what was written of an event that was foreseen, if it is this one."""
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is None or foreseen.event is not event:
            return False
        if foreseen.before.state is not self._state or foreseen.before.tip != self._tip:
            return False
        self._go_to(foreseen.after)
        return True

    def _place(self) -> _Place:
        return _Place(self._state, self._step, self._tip, self._tree.oid)

    def _go_to(self, place: _Place) -> None:
        self._state, self._step, self._tip = place.state, place.step, place.tip
        self._tree.oid = place.tree

    def _mark(self) -> None:
        self._published = self._tip
        self._base_state, self._base_step, self._base_tree = self._state, self._step, self._tree.oid
        self._pending.clear()
        self._new_plan = None

    def _fold(self, event: ev.Event) -> None:
        self._state = self.machine.evolve(self._state, event, Oid(""))
        self._unwritten.append((event, self._state))

    def _write(self, event: ev.Event, unknown: BatchState) -> None:
        """Write an event's commit, and name it in the state if that is still the newest one.

        Args:
            unknown: the state it led to, without its own id.
        """
        text = record.render(event, unknown, self.machine.graph, self._step + 1, self._runner)
        tree = self._tree.apply(event, unknown)
        parents = [*([self._tip] if self._tip else []), *record.keeps(event)]
        oid = commits.make(
            self._repo,
            tree=tree,
            parents=parents,
            message=text,
            who=self._who,
            at=event.at,
            sign=isinstance(event, ev.Authorized) and event.authorization.signed,
        )
        if self._state is unknown:
            self._state = _named(unknown, oid)
        self._step += 1
        self._tip = oid

    def _rebase(self) -> None:
        """Put the unpublished events on top of what others appended."""
        name = ref_name(self.state.batch_id)
        tip = self._refs.read(name)
        if tip is None or self._base_state is None:
            raise StaleError(f"the record '{name}' was removed or made by another run")
        chain: list[tuple[Oid, entries.Entry]] = []
        oid = tip
        while oid not in (self._published, self._tip):
            facts = commits.read(self._repo, oid)
            if is_event(facts.message):
                chain.append((oid, record.parse(facts.message)))
            if not facts.parents or len(chain) > _APPENDED_MOST:
                raise StaleError(f"the record '{name}' was set back by somebody else")
            oid = facts.parents[0]
        if oid == self._tip:  # it was published, and others came on top of it
            self._mark()
        state, step = self._base_state, self._base_step
        for oid, entry in reversed(chain):
            if not isinstance(entry.event, ev.Authorized | ev.StopRequested):
                raise StaleError(f"another process works on '{name}'")
            if isinstance(entry.event, ev.Authorized):
                self._refuse_other(entry.event, state)
            state, step = self.machine.evolve(state, entry.event, oid), entry.step
        tree = commits.read(self._repo, chain[0][0]).tree if chain else self._base_tree
        assert tree is not None
        self._tree.reset(tree)
        if self._new_plan is not None:
            self._tree.write_plan(self._new_plan)
        self._state, self._step = state, step
        self._tip = self._published = tip
        self._base_state, self._base_step, self._base_tree = state, step, tree
        self._unwritten.clear()
        for event in self._pending:
            self._fold(event)
            self.write()

    def _refuse_other(self, event: ev.Authorized, state: BatchState) -> None:
        """Refuse a renewal by others that changes the plan, or under one that we made of the old.

        Ours says all bounds as they were: appended unchanged, it would take back what they granted.
        """
        ours = any(isinstance(pending, ev.Authorized) for pending in self._pending)
        if ours or event.authorization.plan_digest != state.plan_digest:
            raise StaleError(f"another process renewed batch '{state.batch_id}' meanwhile")


def _named(state: BatchState, oid: Oid) -> BatchState:
    flight = state.in_flight
    return replace(state, in_flight=reading.own_id(flight, oid)) if flight else state
