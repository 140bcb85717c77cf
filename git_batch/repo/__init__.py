"""The repository: the only room that imports pygit2 and the only one that calls git.

Division of labour (each line is a measured trap of the other side):

* git, through `git.Git`: working tree to tree (`worktree`), tree to working tree (`restore`), the
  index (`index`), status. libgit2 skips external filters, deletes what a sparse checkout left out,
  commits intent-to-add entries as empty files, and can't read sparse or split indexes.
* libgit2, through `repository.Repository.objects`: reading objects, building trees, comparing
  trees (`trees`). Nothing here creates or deletes refs through its unconditional functions.

Paths are bytes, as git's are; directories of this machine are `str` with surrogate escapes.
Object ids are `Oid` strings of 40 hexadecimal digits.
"""
