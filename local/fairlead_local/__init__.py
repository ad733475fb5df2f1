"""A cluster of real processes on this host, for the command line, measurements and tests."""
