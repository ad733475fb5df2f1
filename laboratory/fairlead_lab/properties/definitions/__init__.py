"""The properties, each with the papers' definition in its docstring and how ours makes it checkable."""
