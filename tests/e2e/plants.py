"""What a task may plant for git to run or to see otherwise, and where that is seen again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from git_batch.repo.here import git_dir_above
from tests.e2e.job import batch
from tests.e2e.scene import eventually

PLANTS = {
    "fsmonitor": 'git config core.fsmonitor "touch $MARK; false"',
    "hooks path": 'mkdir src/h; printf "#!/bin/sh\\ntouch $MARK\\n" >src/h/post-index-change;'
    "chmod +x src/h/*; for h in pre-commit commit-msg post-commit reference-transaction;"
    'do cp src/h/post-index-change src/h/$h; done; git config core.hooksPath "$PWD/src/h"',
    "hook": "for h in pre-commit commit-msg post-commit reference-transaction post-index-change;"
    'do printf "#!/bin/sh\\ntouch $MARK\\n" >.git/hooks/$h; chmod +x .git/hooks/$h; done',
    "clean filter": 'git config filter.evil.clean "touch $MARK; cat"; '
    'echo "* filter=evil" >.git/info/attributes',
    "smudge filter": 'git config filter.evil.smudge "touch $MARK; cat"; '
    'echo "* filter=evil" >.git/info/attributes; rm src/b',
    "filter process": 'git config filter.evil.process "touch $MARK; cat"; '
    'echo "* filter=evil" >src/.gitattributes',
    "alias": 'git config alias.status "!touch $MARK"; git config alias.add "!touch $MARK"',
    "include": 'printf "[core]\\n\\tfsmonitor = touch $MARK; false\\n" >src/evil; '
    'git config include.path "$PWD/src/evil"',
    "conditional include": 'printf "[core]\\n\\tfsmonitor = touch $MARK; false\\n" >src/evil; '
    'git config "includeIf.onbranch:**.path" "$PWD/src/evil"',
    "textconv": 'git config diff.evil.textconv "touch $MARK; cat"; '
    'echo "* diff=evil" >.git/info/attributes',
    "external diff": 'git config diff.external "touch $MARK"',
    "worktree config": "git config extensions.worktreeConfig true; "
    'git config --worktree core.fsmonitor "touch $MARK; false"',
    "signing program": 'git config commit.gpgSign true; printf "#!/bin/sh\\ntouch $MARK\\nexit 1" '
    '>src/sign; chmod +x src/sign; git config gpg.program "$PWD/src/sign"',
    "a folder for config": "mv .git/config .git/c; mkdir .git/config; touch .git/config/x",
    "a link for config": "mv .git/config src/config; ln -s ../src/config .git/config; "
    'git config -f src/config core.fsmonitor "touch $MARK; false"',
    "a fifo for config": "rm .git/config; mkfifo .git/config",
    "broken config": "echo '[' >>.git/config",
    "in place, same size and time": "cp -p .git/config src/d; "
    "printf X | dd of=.git/config bs=1 seek=3 conv=notrunc 2>/dev/null; touch -r src/d .git/config",
    "exclude": "echo '*' >>.git/info/exclude; echo stray >stray",
    "attributes": "echo '* -text' >.git/info/attributes",
    "grafts": "git rev-parse HEAD >.git/info/grafts",
    "sparse checkout": "git sparse-checkout set nothing",
    "alternates": "mkdir -p .git/objects/info; echo /nowhere >.git/objects/info/alternates",
    "hooks gone": "rm -r .git/hooks",
    "hook made a plain file": "chmod -x .git/hooks/pre-push",
    "hook gone": "rm .git/hooks/pre-push",
    "hook edited": "echo exit 0 >>.git/hooks/pre-push",
    "hook's helper": "mkdir .git/hooks/lib; echo x >.git/hooks/lib/common.sh",
    "hooks elsewhere": "mv .git/hooks src/hooks; ln -s ../src/hooks .git/hooks",
    "no hooks path": "git config core.hooksPath /dev/null",
    "ssh command": 'git config core.sshCommand "touch $MARK; false"',
    "pager and editor": 'git config core.pager "touch $MARK; cat"; '
    'git config core.editor "touch $MARK; false"; git config sequence.editor "touch $MARK; false"',
    "signatures shown": 'printf "#!/bin/sh\\ntouch $MARK\\nexit 1" >src/sign; chmod +x src/sign; '
    'git config log.showSignature true; git config gpg.program "$PWD/src/sign"; '
    'git config gpg.ssh.program "$PWD/src/sign"',
    "merge driver": 'git config merge.evil.driver "touch $MARK; false"; '
    'git config merge.default evil; echo "* merge=evil" >.git/info/attributes',
    "refs of alternates": 'git config core.alternateRefsCommand "touch $MARK"; '
    'mkdir -p .git/objects/info; echo "$PWD/.git/objects" >.git/objects/info/alternates',
    "credentials": 'git config credential.helper "!touch $MARK"',
    "another top": 'git config core.worktree "$PWD/src"',
}
"""Shell commands; whatever of it is run makes the file `$MARK`."""


def killer(plant: str) -> str:
    """Write a command that plants something and kills its runner, the first time that it runs."""
    return (
        f'if ! [ -e "$MARK.once" ]; then : >"$MARK.once"; echo half >src/c; {plant}\n'
        "kill -9 $PPID; exit; fi; echo c >src/c"
    )


def killed(top: Path, *args: str) -> None:
    """Run what ends by such a command; wait until that has ended as well."""
    batch(top, *args, status=-9)
    eventually(lambda: not at_work(top), "the task has ended")


def at_work(top: Path) -> bool:
    """Tell whether a process of a task holds the lock of a working tree."""
    lock = Path(git_dir_above(str(top)) or "", "batch/tree.lock")
    return subprocess.run(["flock", "-n", str(lock), "true"]).returncode != 0


def settings(repo: Path) -> dict[str, bytes]:
    """Read all that a task may plant something in."""
    found = {}
    for place in ("config", "config.worktree", "hooks", "info", "objects/info/alternates"):
        path = repo / ".git" / place
        files = path.rglob("*") if path.is_dir() else [path]
        for file in files:
            if file.is_file():
                found[str(file)] = file.read_bytes() + bytes([file.stat().st_mode & 0o777 > 0o700])
    return found


def is_undone(said: str, where: str = "") -> bool:
    """Tell whether a plant is said to be gone: put back, or taken away where nothing was before."""
    ways = ("was changed and is put back", "was new, and is taken away; it is in '")
    return any(f"{where}' {way}" in said for way in ways)


def asked_to_verify() -> str:
    """Make git verify a signature, and call a program of the task's for that."""
    program = 'printf "#!/bin/sh\\ntouch $MARK\\nexit 1" >src/sign; chmod +x src/sign; '
    keys = "; ".join(
        f'git config {key} "$PWD/src/sign"' for key in ("gpg.program", "gpg.ssh.program")
    )
    head = "-----BEGIN PGP SIGNATURE-----"
    forge = (
        'R=refs/notes/batch/$BATCH_ID; P=$(git rev-list --first-parent --grep="authorized" -1 $R); '
        f'C=$(git cat-file commit $P | sed "/^committer/a gpgsig {head}" | '
        "git hash-object -t commit -w --stdin --literally); git update-ref $R $C"
    )
    return f"{program}{keys}; git config batch.requireSigned true; {forge}"
