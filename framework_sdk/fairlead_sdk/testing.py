"""Where the kit for testing frameworks was; it is in ``fairlead_sim.testing`` now."""

raise ImportError(
    "fairlead_sdk.testing is now fairlead_sim.testing, and its FakeMaster is VirtualMaster: the core of a live master "
    "in place of an imitation. Outcome and VirtualClock have kept their names."
)
