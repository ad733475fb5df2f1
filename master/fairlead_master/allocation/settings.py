"""What an operator may set is checked before it is in force."""

from typing import Final

from fairlead_master.allocation import placement
from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_master.allocation.policies import names
from fairlead_proto.resources import ResourceKinds

MODES: Final = ("skip", "freeze")

DEMANDS: Final = ("declared", "measured")


def check_settings(settings: AllocationSettings, kinds: ResourceKinds) -> None:
    """Raise ``AllocationError`` if a name in the settings is not known; the message names the setting."""
    names.parse(settings.policy, kinds.names)
    placement.parse(settings.placement)
    if settings.demand not in DEMANDS:
        raise AllocationError(f"demand: expected one of {', '.join(DEMANDS)}, got {settings.demand!r}")
    if settings.when_head_does_not_fit not in MODES:
        raise AllocationError(
            f"when_head_does_not_fit: expected one of {', '.join(MODES)}, got {settings.when_head_does_not_fit!r}"
        )
