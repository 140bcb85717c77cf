"""Texts that an agent might write, and that readers of trailers are known to disagree about."""

from __future__ import annotations

from git_batch.core import trailers

OURS = [
    ("Batch-Id", "modernise-7k2m9q"),
    ("Batch-Task", "t1"),
    ("Batch-Plan", "sha256:" + "a" * 64),
    ("Batch-Record", "b" * 40),
]
SCISSORS = "# ------------------------ >8 ------------------------"

TEXTS = {
    "nothing": "",
    "prose": "Some words.\n\nMore words.",
    "forged": "Batch-Task: forged",
    "forged, two": "Batch-Id: forged\nBatch-Task: forged",
    "forged after prose": "words\nBatch-Task: forged",
    "forged last paragraph": "words\n\nBatch-Task: forged\nBatch-Id: forged",
    "forged earlier paragraph": "Batch-Task: forged\n\nwords",
    "forged lower case": "words\n\nbatch-task: forged",
    "forged without space": "words\n\nBatch-Task:forged",
    "forged with space before": "words\n\nBatch-Task : forged",
    "forged with tab": "words\n\nBatch-Task\t:\tforged",
    "forged after divider": "words\n\n---\nBatch-Task: forged",
    "divider": "words\n---\nnot in the message",
    "divider with text": "words\n\n--- a/file\n+++ b/file\n@@ -1 +1 @@",
    "divider, first": "---",
    "divider, long": "words\n\n----------\n\nwords",
    "scissors": f"words\n\n{SCISSORS}\nBatch-Task: forged",
    "scissors, plain": "words\n\n---- >8 ----\nBatch-Task: forged",
    "bare CR": "words\n\nNote: forged\rBatch-Task: forged",
    "CR LF": "words\r\n\r\nBatch-Task: forged\r\n",
    "duplicate": "Batch-Task: forged\nBatch-Task: forged",
    "folded": "words\n\nBatch-Task: forged\n continued",
    "continuation only": "words\n\n continued",
    "continuation, tab": "words\n\n\tcontinued: yes",
    "empty value": "words\n\nBatch-Task:\nBatch-Id: forged",
    "leading blank lines": "\n\n\nBatch-Task: forged",
    "trailing blank lines": "Batch-Task: forged\n\n\n",
    "blank lines with spaces": "words\n \t\nBatch-Task: forged\n \n",
    "signed off": "words\n\nSigned-off-by: An Agent <a@x>",
    "signed off among prose": "words\nwords\nSigned-off-by: An Agent <a@x>\nwords",
    "cherry pick": "words\n\n(cherry picked from commit 0123456789)",
    "co-author": "words\n\nCo-authored-by: An Agent <a@x>",
    "url": "see\nhttps://example.org/a",
    "url, last paragraph": "words\n\nhttps://example.org/a",
    "conventional commit": "fix: something\n\nBREAKING CHANGE: x\nBREAKING-CHANGE: y",
    "comment": "words\n\n# a comment",
    "comment among trailers": "words\n\n# a comment\nBatch-Task: forged\n# another",
    "conflicts": "words\n\nConflicts:\n\tsrc/a\n\tsrc/b",
    "non-ASCII key": "words\n\nBätch-Task: forged",
    "key with underscore": "words\n\nBatch_Task: forged",
    "hyphen first": "words\n\n-Batch-Task: forged",
    "other separators": "words\n\nBatch-Task= forged\nBatch-Task # forged",
    "NUL": "words\0\n\nBatch-Task\0: forged",
    "escape": "\x1b[31mBatch-Task\x1b[0m: forged",
    "vertical tab and form feed": "words\n\x0b\x0c\nBatch-Task: forged",
    "line separators": "words\u2028Batch-Task: forged\x85Batch-Task: forged",
    "no-break space": "words\n\u00a0\nBatch-Task: forged",
    "zero width": "words\n\n\u200bBatch-Task: forged",
    "right to left": "words\n\n\u202eBatch-Task: forged",
    "list of keys": "- a: 1\n- b: 2",
    "toml": 'a = "b"\n[c]\nd = 1',
    "mail headers": "From: a@x\nDate: now\nSubject: x\n\nwords",
    "mbox": "From 0123456789 Mon Sep 17 00:00:00 2001\nwords",
    "diff": "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x",
    "surrogate": "words \udcff",
    "long line": "x" * 5000,
    "many lines": "\n".join(f"Key-{i}: v" for i in range(500)),
}


def written(text: str) -> bytes:
    """Write a task's commit message with an agent's text in its body."""
    return trailers.with_trailers(trailers.compose("Do it", text), OURS)
