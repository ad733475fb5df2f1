"""Runs a planned workload as real tasks on a live cluster."""
