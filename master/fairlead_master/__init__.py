"""The master: aggregates agents, decides who is offered what, and tracks every task."""
