"""pygit2 for the rest of this room, imported in a way that no certificate can stand in.

While it is imported, pygit2 has OpenSSL load whatever certificates Python trusts, and where that
fails the import fails: a `SSL_CERT_FILE` that names a file that is gone, a container without
certificates, another distribution's Python. Nothing of ours reaches a network through libgit2 (git
does), so no file is named to it, and a directory that it would look into when it needs one. Not to
read some 150 certificates also saves nearly a quarter of the time that importing it takes.

Whatever else imports pygit2 before does it without this: `pyproject.toml` lets nobody.
"""

from __future__ import annotations

import os

from git_batch.repo.environment import variables

_PLACES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.sep}
"""No regular file, so that none is named; a directory that is always there."""

with variables(_PLACES):
    import pygit2
    from pygit2.enums import DiffOption, FileMode, ObjectType, Option

UNREADABLE = (KeyError, ValueError, pygit2.GitError, OSError)
"""How libgit2 says that an object is missing, no object's id, damaged, or out of reach."""

__all__ = ["UNREADABLE", "DiffOption", "FileMode", "ObjectType", "Option", "pygit2"]
