"""The policies, one a file: each says in its docstring what its key is, where that comes from, and how it differs."""
