"""The batch's transition table as a Mermaid state diagram, to compare documents with."""

from __future__ import annotations

from git_batch.core.standing import BatchStatus
from git_batch.core.transitions import BATCH


def mermaid() -> str:
    """Draw `transitions.BATCH`; what leads from one state to the same other is one arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (status, name), to in BATCH.items():
        if status is not to:
            source = "[*]" if status is BatchStatus.PREPARED else status.value
            shown = name.replace("decided:", "").split(":")[0]
            names = arrows.setdefault((source, to.value), [])
            if shown not in names:
                names.append(shown)
    lines = [f"    {a} --> {b}: {', '.join(names)}" for (a, b), names in arrows.items()]
    ends = [s.value for s in BatchStatus if not any(a == s for a, _ in arrows) and _used(s)]
    return "\n".join(["stateDiagram-v2", *lines, *(f"    {end} --> [*]" for end in ends)]) + "\n"


def _used(status: BatchStatus) -> bool:
    return status in BATCH.values()


if __name__ == "__main__":
    print(mermaid(), end="")
