"""The vocabulary the roles share: value types, the task table, and the wire schema."""

__version__ = "0.1.0"
