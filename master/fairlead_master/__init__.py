"""The master: aggregates agents, decides who is offered what, and tracks every task."""

from fairlead_proto import __version__ as __version__
