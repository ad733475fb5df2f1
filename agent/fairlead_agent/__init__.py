"""The agent: offers one host's resources to the master and runs tasks on it."""

from fairlead_proto import __version__ as __version__
