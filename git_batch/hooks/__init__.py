"""What git's hooks ask: may this be pushed, may this branch be moved, did this rewrite break one.

The hooks themselves are POSIX shell (top-level `hooks/`); they start Python only when a batch may
be concerned. Rules of the room:

* Nothing here writes to the repository: inside a receiving hook libgit2 could set refs to objects
  in quarantine, and a rejected push would leave the repository broken. Objects and refs are read
  by git processes; neither pygit2, click nor pydantic is imported on the way to an answer.
* What is pushed is judged, not what is checked out: the lineage from the batch's base to the
  *pushed* commit. There is one walk for that, `repo.lineage`.
* Refused is what is proven to be wrong, and what should be readable and is not. A record that is
  simply not here proves nothing: the push passes and says what could not be verified.
* A client's hook is a courtesy, `git push --no-verify` or another `core.hooksPath` goes round it;
  the server's hook, or `git batch verify` in CI, is the control.
"""
