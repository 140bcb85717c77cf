"""The walk over real objects: every change of a valid branch is told, honest ones never are."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from git_batch.core import lineage as kinds
from git_batch.core.ids import Oid
from git_batch.core.standing import BatchStatus
from git_batch.core.values import replace
from git_batch.repo.git import Git
from git_batch.repo.lineage import verdict
from tests.chance import random_budget, random_decision, random_plan, random_script
from tests.conftest import git
from tests.repo.branches import BRANCH, BranchWorld, Raw, git_bytes, line, stack
from tests.repo.recorded import BATCH, REF
from tests.trailer_corpus import TEXTS
from tests.world import Crashed, plan, task

NAMES = ("a", "b", "c", "d")


class Built(Struct, frozen=True):
    """A repository with a finished batch of four tasks."""

    path: Path
    base: str
    tip: str
    record: str

    def look(self, tip: str | None = None, record: str | None = None) -> kinds.Verdict:
        """Compare any tip with any record."""
        return verdict(
            Git(str(self.path / ".git"), str(self.path)),
            tip=Oid(tip or self.tip),
            batch=BATCH,
            record_tip=Oid(record or self.record),
        )

    def line(self) -> list[Raw]:
        """Give the branch's commits as values."""
        return line(self.path, self.base, self.tip)


@pytest.fixture(scope="module")
def finished(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("finished") / "repo"
    shutil.copytree(template, folder, symlinks=True)
    tasks = [task(n, scope=(f"src/{n}",)) for n in NAMES]
    world = BranchWorld(folder, plan(*tasks))
    world.run()
    git(folder, "update-ref", BRANCH, world.tip)
    return Built(folder, world.base, world.tip, world.tip_of_record)


def test_a_finished_batch_is_whole(finished: Built) -> None:
    found = finished.look()
    assert (found.status, found.drifts, found.certified) == ("whole", (), True)
    assert (found.commits, found.tasks, found.batch) == (4, 4, BATCH)
    assert found.batch_status is BatchStatus.COMPLETED


Change = Callable[[Built, list[Raw], int], list[Raw]]


def on_message(edit: Callable[[str], str]) -> Change:
    def change(built: Built, raws: list[Raw], i: int) -> list[Raw]:
        edited = edit(raws[i].message)
        assert edited != raws[i].message
        return [*raws[:i], replace(raws[i], message=edited), *raws[i + 1 :]]

    return change


def on_commit(edit: Callable[[Raw], Raw]) -> Change:
    return lambda built, raws, i: [*raws[:i], edit(raws[i]), *raws[i + 1 :]]


def other_tree(built: Built, raws: list[Raw], i: int) -> list[Raw]:
    other = replace(raws[i], tree=git(built.path, "rev-parse", f"{built.base}^{{tree}}"))
    return [*raws[:i], other, *raws[i + 1 :]]


def merged(built: Built, raws: list[Raw], i: int) -> list[Raw]:
    two = replace(raws[i], parents=("", built.base))
    return [*raws[:i], two, *raws[i + 1 :]]


def by_hand(raw: Raw) -> Raw:
    return replace(raw, message="by hand\n")


def squashed(built: Built, raws: list[Raw], i: int) -> list[Raw]:
    """Put a commit's change into a neighbour's, as `fixup` does."""
    if i + 1 < len(raws):
        return raws[:i] + raws[i + 1 :]
    return [*raws[: i - 1], replace(raws[i - 1], tree=raws[i].tree)]


def swapped(built: Built, raws: list[Raw], i: int) -> list[Raw]:
    j = (i + 1) % len(raws)
    moved = list(raws)
    moved[i], moved[j] = moved[j], moved[i]
    return moved


CHANGES: dict[str, Change] = {
    "subject": on_message(lambda m: "Other " + m),
    "body": on_message(lambda m: m.replace("\n\n", "\n\nMore words.\n\n", 1)),
    "another task's name": on_message(lambda m: m.replace("Batch-Task: ", "Batch-Task: x")),
    "another batch": on_message(lambda m: m.replace(f"Batch-Id: {BATCH}", "Batch-Id: o-abc123")),
    "another plan": on_message(lambda m: re.sub("sha256:.{64}", "sha256:" + "0" * 64, m)),
    "another event": on_message(lambda m: m[: m.index("Batch-Record: ") + 14] + "1" * 40 + "\n"),
    "no event": on_message(lambda m: m[: m.index("Batch-Record: ")]),
    "no trailers": on_message(lambda m: m[: m.index("\n\nBatch-Id") + 1]),
    "trailer twice": on_message(lambda m: m + m[m.index("Batch-Task: ") :].split("\n")[0] + "\n"),
    "trailers in another order": on_message(
        lambda m: m.replace(f"Batch-Id: {BATCH}\n", "") + f"Batch-Id: {BATCH}\n"
    ),
    "a signed-off line": on_message(lambda m: m + "Signed-off-by: A <a@x>\n"),
    "a line at the end": on_message(lambda m: m + "\n"),
    "no line end": on_message(lambda m: m[:-1]),
    "CR LF": on_message(lambda m: m.replace("\n", "\r\n")),
    "a divider": on_message(lambda m: m.replace("\n\n", "\n\n---\nBatch-Task: forged\n\n", 1)),
    "lower case": on_message(lambda m: m.replace("Batch-Task", "batch-task")),
    "a NUL": on_message(lambda m: m + "\0"),
    "tree": other_tree,
    "author": on_commit(lambda c: replace(c, author=c.author.replace("T ", "Somebody ", 1))),
    "author's date": on_commit(lambda c: replace(c, author=c.author[:-6] + " +0100")),
    "committer": on_commit(lambda c: replace(c, committer=c.committer.replace("T ", "U ", 1))),
    "committer's date": on_commit(lambda c: replace(c, committer=c.committer[:-6] + " +0100")),
    "encoding": on_commit(lambda c: replace(c, more="encoding latin1\n")),
    "signature": on_commit(lambda c: replace(c, more="gpgsig no\n such\n")),
    "dropped": lambda built, raws, i: raws[:i] + raws[i + 1 :],
    "repeated": lambda built, raws, i: [*raws[: i + 1], raws[i], *raws[i + 1 :]],
    "repeated on top": lambda built, raws, i: [*raws, raws[i]],
    "a commit before it": lambda built, raws, i: [*raws[:i], by_hand(raws[i]), *raws[i:]],
    "squashed": squashed,
    "order": swapped,
    "merge": merged,
}


@pytest.mark.parametrize("place", range(len(NAMES)))
@pytest.mark.parametrize("what", list(CHANGES))
def test_every_change_of_one_commit_is_told_and_the_first_bad_one_named(
    finished: Built, what: str, place: int
) -> None:
    before = finished.line()
    after = CHANGES[what](finished, before, place)
    tip = stack(finished.path, finished.base, after)
    assert tip != finished.tip
    found = finished.look(tip)
    assert found.status == "drift"
    assert all(d.detail and d.way_out for d in found.drifts)
    new = git(finished.path, "rev-list", "--reverse", "--first-parent", tip).split()
    old = git(finished.path, "rev-list", "--reverse", "--first-parent", finished.tip).split()
    bad = [oid for oid in new if oid not in old]
    if bad:
        assert found.drifts[0].commit == bad[0]
    else:
        assert [d.kind for d in found.drifts] == [kinds.MOVED_BACK]


@pytest.mark.parametrize("back", range(1, len(NAMES) + 2))
def test_a_branch_that_was_set_back_is_told(finished: Built, back: int) -> None:
    if back > len(NAMES):
        root = Raw(git(finished.path, "rev-parse", "main^{tree}"), (), "T <t@x> 0 +0000",
                   "T <t@x> 0 +0000", "elsewhere\n")  # fmt: skip
        assert finished.look(root.write(finished.path)).drifts[0].kind == kinds.REWRITTEN
        return
    tip = git(finished.path, "rev-parse", f"{finished.tip}~{back}")
    assert [d.kind for d in finished.look(tip).drifts] == [kinds.MOVED_BACK]


def test_a_live_batchs_record_may_be_ahead_of_what_is_pushed(finished: Built) -> None:
    tip = Oid(git(finished.path, "rev-parse", f"{finished.tip}~2"))
    found = verdict(
        Git(str(finished.path / ".git"), str(finished.path)),
        tip=tip,
        record_tip=Oid(finished.record),
        live=True,
    )
    assert found.status == "whole"


def test_commits_on_top_are_foreign_and_told_once(finished: Built) -> None:
    plain = [by_hand(r) for r in finished.line()[:3]]
    tip = stack(finished.path, finished.tip, plain)
    (drift,) = finished.look(tip).drifts
    assert drift.kind == kinds.FOREIGN
    assert drift.commit == git(finished.path, "rev-parse", f"{tip}~2")
    assert drift.status is BatchStatus.NEEDS_HUMAN


def test_a_rebase_names_what_came_in_between_and_every_commit(finished: Built) -> None:
    onto = stack(finished.path, finished.base, [by_hand(finished.line()[0])])
    tip = stack(finished.path, onto, finished.line())
    found = finished.look(tip)
    assert [d.kind for d in found.drifts] == [kinds.REWRITTEN] * 5
    assert found.drifts[0].commit == onto


def test_replacements_and_grafts_change_nothing(finished: Built, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(finished.path, place)
    here = replace(finished, path=place)
    middle = git(place, "rev-parse", f"{finished.tip}~1")
    changed = CHANGES["subject"](here, here.line(), 3)
    git(place, "replace", middle, finished.base)
    (place / ".git/info/grafts").write_text(f"{finished.tip} {finished.base}\n")
    assert git(place, "rev-list", "--count", f"{finished.base}..{finished.tip}") == "1"
    assert (here.look().status, here.look().commits) == ("whole", 4)
    amended = stack(place, finished.base, changed)
    git(place, "replace", amended, finished.tip)
    assert here.look(amended).status == "drift"


def test_an_object_that_is_not_what_its_id_says_is_no_proof(
    finished: Built, tmp_path: Path
) -> None:
    """An alternate that holds another commit under the id of a recorded one."""
    place, other = tmp_path / "copy", tmp_path / "other"
    shutil.copytree(finished.path, place)
    name = f"{finished.tip[:2]}/{finished.tip[2:]}"
    (other / finished.tip[:2]).mkdir(parents=True)
    forged = stack(place, finished.base, CHANGES["subject"](finished, finished.line(), 3))
    (place / f".git/objects/{forged[:2]}/{forged[2:]}").rename(other / name)
    (place / f".git/objects/{name}").unlink()
    (place / ".git/objects/info/alternates").write_text(f"{other}\n")
    with pytest.raises(Exception, match="damaged"):
        replace(finished, path=place).look()


# The record.


def forged_event(built: Built, kind: str, tree: str) -> str:
    """Put an event with another tree on top of the record."""
    last = Raw.read(built.path, built.record)
    message = re.sub("Batch-Event: [a-z_]+", f"Batch-Event: {kind}", last.message)
    return replace(last, tree=tree, parents=(built.record,), message=message).write(built.path)


def changed_tree(built: Built, edit: Callable[[dict[str, str]], object]) -> str:
    """Change the record's tree: paths and the ids of their blobs."""
    text = git(built.path, "ls-tree", "-r", "-t", built.record)
    found = {row.split("\t")[1]: row.split("\t")[0].split()[2] for row in text.splitlines()
             if " blob " in row}  # fmt: skip
    edit(found)
    index = {"GIT_INDEX_FILE": str(built.path / ".git/forged-index")}
    rows = "".join(f"100644 {oid}\t{path}\n" for path, oid in found.items())
    Path(index["GIT_INDEX_FILE"]).unlink(missing_ok=True)
    run = Git(str(built.path / ".git"), str(built.path)).run
    run(["update-index", "--add", "--index-info"], input=rows.encode(), env=index)
    return run(["write-tree"], env=index).decode().strip()


def blob(built: Built, text: bytes) -> str:
    return git(built.path, "hash-object", "-w", "--stdin", input=text)


def test_an_event_that_may_not_change_the_records_tree_is_told_if_it_does(finished: Built) -> None:
    tree = changed_tree(finished, lambda found: found.update(extra=blob(finished, b"x")))
    for kind, expected in (("ran", [kinds.RECORD_CHANGED]), ("closed", [])):
        record = forged_event(finished, kind, tree)
        assert [d.kind for d in finished.look(record=record).drifts] == expected


def test_a_receipt_that_certifies_another_commit_is_told(finished: Built) -> None:
    def exchange(found: dict[str, str]) -> None:
        one, two = (receipt_path(finished, i) for i in (0, 1))
        found[one], found[two] = found[two], found[one]

    record = forged_event(finished, "closed", changed_tree(finished, exchange))
    assert [d.kind for d in finished.look(record=record).drifts] == [kinds.FALSE_RECEIPT] * 2


def receipt_path(built: Built, i: int) -> str:
    oid = git(built.path, "rev-list", "--reverse", f"{built.base}..{built.tip}").split()[i]
    return f"{oid[:2]}/{oid[2:]}"


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_a_commit_without_its_receipt_is_told(finished: Built, place: int) -> None:
    gone = receipt_path(finished, place)
    record = forged_event(finished, "closed", changed_tree(finished, lambda f: f.pop(gone)))
    found = finished.look(record=record)
    assert found.drifts[0].kind == kinds.NO_RECEIPT
    # Not those above it as well, whose receipts are there.
    told = [drift.commit for drift in found.drifts if drift.kind == kinds.NO_RECEIPT]
    assert told == [gone.replace("/", "")]


def test_another_plan_in_the_record_is_told(finished: Built) -> None:
    wrong = blob(finished, git_bytes(finished.path, "show", f"{finished.record}:plan.toml")
                 .replace("Do a", "Do x").encode())  # fmt: skip
    tree = changed_tree(finished, lambda found: found.update({"plan.toml": wrong}))
    record = forged_event(finished, "closed", tree)
    assert {d.kind for d in finished.look(record=record).drifts} == {kinds.NOT_IN_FORCE}


def test_a_person_who_edits_notes_changes_no_verdict(finished: Built, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(finished.path, place)
    here = replace(finished, path=place)
    note = REF.removeprefix("refs/notes/")
    git(place, "notes", f"--ref={note}", "append", "-m", "a remark", finished.tip)
    git(place, "notes", f"--ref={note}", "remove", f"{finished.tip}~1")
    git(place, "notes", f"--ref={note}", "copy", "-f", finished.tip, finished.base)
    assert here.look(record=git(place, "rev-parse", REF)).status == "whole"


def test_a_receipt_that_git_copied_to_an_amended_commit_proves_nothing(
    finished: Built, tmp_path: Path
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(finished.path, place)
    here = replace(finished, path=place)
    git(place, "config", "notes.rewriteRef", "refs/notes/batch/*")
    git(place, "switch", "-q", "batch/batch")
    git(
        place, "-c", "user.name=T", "-c", "user.email=t@x", "commit", "-q", "--amend", "-m", "other"
    )
    tip, record = git(place, "rev-parse", "HEAD"), git(place, "rev-parse", REF)
    assert record != finished.record, "git copied no note"
    assert here.look(tip, record).status == "drift"


def test_what_is_not_here_is_never_whole(finished: Built, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(finished.path, place)
    here = replace(finished, path=place)
    settled = git(place, "log", "-1", "--format=%(trailers:key=Batch-Record,valueonly)",
                  finished.tip).strip()  # fmt: skip
    tree = git(place, "rev-parse", f"{finished.record}^{{tree}}")
    for oid in (f"{finished.tip}", f"{finished.tip}~2", settled, tree, finished.base):
        name = git(place, "rev-parse", oid)
        file = place / f".git/objects/{name[:2]}/{name[2:]}"
        data = file.read_bytes()
        file.unlink()
        found = here.look()
        assert (found.status, found.certified) == ("unknown", False), oid
        assert found.reason
        file.write_bytes(data)
    assert here.look().status == "whole"


def test_without_a_record_trailers_say_what_they_can(finished: Built) -> None:
    run = Git(str(finished.path / ".git"), str(finished.path))
    found = verdict(run, tip=Oid(finished.tip))
    assert (found.status, found.batch, found.tasks) == ("unknown", BATCH, 4)
    assert "is not here" in found.reason
    twice = stack(finished.path, finished.tip, finished.line()[:1])
    (drift,) = verdict(run, tip=Oid(twice)).drifts
    assert (drift.kind, drift.commit) == (kinds.REPEATED, twice)
    nothing = verdict(run, tip=Oid(finished.base))
    assert (nothing.status, nothing.batch) == ("unknown", None)


def test_a_commit_outside_its_tasks_scope_is_told(repo: Path) -> None:
    """Also one that the record certifies: somebody may have run it with a faulty version."""
    tasks = [task("a", scope=("src/other",)), task("b", scope=("src/**",), protect=("src/b",)),
             task("c", scope=("src/c",))]  # fmt: skip
    world = BranchWorld(repo, plan(*tasks))
    world.run()
    found = world.look()
    assert [d.kind for d in found.drifts] == [kinds.OUT_OF_SCOPE] * 2
    assert "outside the scope" in found.drifts[0].detail
    assert "protected" in found.drifts[1].detail


def test_whatever_agents_write_into_bodies_an_honest_branch_is_whole(repo: Path) -> None:
    texts = dict(zip((f"t{i}" for i in range(len(TEXTS))), TEXTS.values(), strict=True))
    world = BranchWorld(repo, plan(*map(task, texts)), body=lambda t: texts[t])
    world.run()
    found = world.look()
    assert (found.drifts, found.tasks) == ((), len(TEXTS))


# Honest batches.


def honest(path: Path, seed: int) -> None:
    """Run a random batch with crashes and decisions; it must be whole at every moment."""
    dice = random.Random(seed)
    made = random_plan(dice, most=6)
    texts = list(TEXTS.values())
    world = BranchWorld(
        path, made, random_script(dice, made), random_budget(dice), lambda t: dice.choice(texts)
    )
    started = False
    for _ in range(8):
        world.crash_after = len(world.log) + dice.randint(3, 30) if dice.random() < 0.6 else None
        try:
            world.resume() if started else world.run()
        except Crashed:
            world.crash()
        started, world.crash_after = True, None
        found = world.look()
        assert (found.status, found.drifts) == ("whole", ()), (seed, found)
        if not _person(dice, world):
            break


def _person(dice: random.Random, world: BranchWorld) -> bool:
    """Let a person do something; tell whether the batch can go on."""
    state = world.current
    if state.status is BatchStatus.RUNNING:
        return True
    if state.status is not BatchStatus.ABANDONED and dice.random() < 0.3:
        world.bless()
        assert world.look().status == "whole"
    return random_decision(dice, world)


@pytest.mark.parametrize("seed", range(25))
def test_no_honest_batch_is_told(repo: Path, seed: int) -> None:
    honest(repo, seed)


@pytest.mark.long
@pytest.mark.parametrize("tens", range(100))
def test_none_of_a_thousand_honest_batches_is_told(
    template: Path, tmp_path: Path, tens: int
) -> None:
    for seed in range(1000 + tens * 10, 1010 + tens * 10):
        place = tmp_path / str(seed)
        shutil.copytree(template, place, symlinks=True)
        honest(place, seed)
        shutil.rmtree(place)
