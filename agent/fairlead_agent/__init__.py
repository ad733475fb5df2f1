"""The agent: offers one host's resources to the master and runs tasks on it."""

__version__ = "0.1.0"
