"""Synthetic workloads: what is drawn, from which distributions, in which order, from one seed."""
