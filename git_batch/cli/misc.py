"""Shell completion, of `git-batch` and of `git batch`.

git's own completion looks for a function named after the subcommand: `_git_batch` in bash,
`_git-batch` in zsh. fish asks for what it knows of `git-batch` by itself.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from git_batch.cli.main import COMPLETE
from git_batch.cli.output import plain

_ALSO = {
    # git's completion has the words of the line in `words`, and from 2.30 on where `batch` is.
    "bash": """
_git_batch() {
    local at=${__git_cmd_idx:-1}
    local typed=("${words[@]:at+1}") place=$((cword - at))
    local COMP_WORDS=(git-batch "${typed[@]}") COMP_CWORD=$place
    _git_batch_completion git-batch
}
""",
    # There `batch` is the first of the words, as `git-batch` is elsewhere.
    "zsh": """
_git-batch() {
    _git_batch_completion "$@"
}
""",
    "fish": "",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print shell completion code for `git-batch` and `git batch`.

    Evaluate it in the shell's start-up file: eval "$(git-batch completion bash)"; in fish:
    git-batch completion fish | source.
    """
    from git_batch.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    plain(kind(cli, {}, "git-batch", COMPLETE).source() + _ALSO[shell])
