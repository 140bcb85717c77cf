"""Use cases: plain functions with plain arguments, each short. The composition root."""
