"""Hooks that another tool manages: does one of them run ours? Read only, never run.

A hook of somebody else is not run to find out, it would do its work. What such tools do with their
hook file is known: husky's sources the script of the same name one folder up, lefthook's and
pre-commit's read a file at the top of the working tree.
"""

from __future__ import annotations

from pathlib import Path

from git_batch.repo.hookdir import calls_us

_LEFTHOOK = ("lefthook", ".lefthook", "lefthook-local", ".lefthook-local")
_FORMATS = (".yml", ".yaml", ".toml", ".json", ".jsonc")


def calling(path: Path, top: Path, name: str) -> str | None:
    """Name the file by which a hook comes to run ours, None if it does not.

    Args:
        path: the hook that git runs.
        top: the top of the working tree.
        name: the hook's name.
    """
    text = _text(path)
    if calls_us(text, name):
        return f"'{path}'"
    candidates: list[Path] = []
    if path.parent.name == "_" and (path.parent / "h").is_file():
        candidates.append(path.parent.parent / name)
    if "lefthook" in text:
        candidates += [top / f"{stem}{form}" for stem in _LEFTHOOK for form in _FORMATS]
    for candidate in candidates:
        if calls_us(_text(candidate), name):
            return f"'{candidate}'"
    framework = top / ".pre-commit-config.yaml"
    if name == "pre-push" and "pre-commit" in text and "git-batch-push" in _text(framework):
        return f"'{framework}'"
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
