"""How fast it is, beside peers from the package registry that are timed in turn with it: ``python -m benchmarks``."""
