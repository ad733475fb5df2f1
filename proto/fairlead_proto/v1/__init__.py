"""Version 1 of the wire schema, with its generated stubs."""
