"""The pure allocation module: policies that say who is served, placement that says where."""
