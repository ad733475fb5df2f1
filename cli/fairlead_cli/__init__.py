"""The `fairlead` command; each verb imports what it needs only when it is called."""
