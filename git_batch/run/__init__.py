"""Running a batch: the loop, what performs its effects, and the watch over child processes."""
