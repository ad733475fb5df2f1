"""The master: aggregates agents, decides who is offered what, and tracks every task."""

__version__ = "0.1.0"
