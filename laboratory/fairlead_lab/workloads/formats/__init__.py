"""Public trace formats as users have them, one file a format, each a stream of bundles."""
