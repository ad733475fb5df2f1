"""Demonstrations that start a cluster of their own and end by themselves."""
