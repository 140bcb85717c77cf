"""Secrets in what a command says: what we keep of it, and commit messages, hold none.

What is recognised (reliability.md, Security model, 7): the values of variables of the command's
own environment whose names say that they are secret, and tokens that tell by their form what they
are, as those who issue them document it, so that a scanner can find them. Nothing else can be:
a password in nobody's environment is a word like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

REDACTED = "[redacted]"

SHORTEST = 8
"""Characters from which on a value is taken for a secret: `PASSWORD=test` is none."""

_NAMES = re.compile(
    r"""TOKEN (?! S | IZ) | SECRET | PASSW(OR)?D | PASSPHRASE | CREDENTIAL | API_?KEY
    | (^|_) (KEY | PWD | PASS | PAT) $""",
    re.VERBOSE | re.IGNORECASE,
)
_NO_SECRETS = re.compile(r"(OLD)?PWD$ | .*_(FILE | PATH | DIR | NAME)$", re.VERBOSE | re.IGNORECASE)
"""Where we are, and where a secret is."""

_TOKENS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY----- .*? (-----END\ [A-Z ]*PRIVATE\ KEY----- | \Z)
    | \b (
        gh[opsur]_[A-Za-z0-9]{36,} | github_pat_\w{22,}                       # GitHub
      | glpat-[\w-]{20,}                                                      # GitLab
      | (AKIA | ASIA)[0-9A-Z]{16}                                             # AWS
      | AIza[\w-]{35}                                                         # Google
      | sk-(ant | proj | svcacct | admin | or)-[\w-]{20,} | sk-[A-Za-z0-9]{32,}  # models
      | [rs]k_(live | test)_[A-Za-z0-9]{16,}                                  # Stripe
      | xox[abeoprs]-[\w-]{10,}                                               # Slack
      | hf_[A-Za-z0-9]{30,} | npm_[A-Za-z0-9]{36} | pypi-[\w-]{16,}           # registries
      | (?<! [\w-]) eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+                          # JSON web tokens
    )
    | (?<= ://) [^\s/:@]* : [^\s/@]+ (?= @)                                   # in URLs
    | (?<= (?i:authorization:)\ ) ((?i:bearer | basic | token)\ +)? \S+       # in headers
    """,
    re.VERBOSE | re.DOTALL,
)


class Redaction:
    """Takes secrets out of text.

    Args:
        environ: what the command that says the text was given.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._values: re.Pattern[str] | None = None

    def __call__(self, text: str) -> str:
        """Give the text without its secrets, each of which is `[redacted]` there."""
        if not text:
            return text
        if self._values is None:
            found = sorted(set(_values(self._environ)), key=len, reverse=True)
            self._values = re.compile("|".join(map(re.escape, found)) or r"(?!)")
        return _TOKENS.sub(REDACTED, self._values.sub(REDACTED, text))

    def of_output(self, output: bytes) -> bytes:
        """Give output without its secrets; what else is in it stays, to the byte."""
        return self(output.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _values(environ: Mapping[str, str]) -> Iterator[str]:
    """Give what is secret: values, and the lines of those that have several (keys)."""
    for name, value in environ.items():
        if _NAMES.search(name) and not _NO_SECRETS.match(name):
            yield from (line for line in (value, *value.splitlines()) if len(line) >= SHORTEST)
