"""Benchmarks, apart from the tests: `make bench` prints ratios that were paired in one run."""
