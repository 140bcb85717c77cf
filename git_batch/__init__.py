"""git-batch: run a plan of dependent changes unattended, one checked commit per task."""

__version__ = "0.1.0"
