"""The vocabulary the roles share: value types, the task table, and the wire schema."""
