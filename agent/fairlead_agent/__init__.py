"""The agent: offers one host's resources to the master and runs tasks on it."""
