"""The simulator: runs the real master and agent cores on virtual time."""
