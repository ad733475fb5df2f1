"""Benchmarks: the allocator by itself, and a cluster of real processes, each figure beside its target and its floor."""
