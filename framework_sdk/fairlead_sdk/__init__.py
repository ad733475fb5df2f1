"""The framework SDK: ask for resources by demand and launch tasks on what is offered."""
