"""The thorough level of simulation: the cores of a live master and its agents, and the messages between them."""
