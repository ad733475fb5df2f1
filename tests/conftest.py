"""What every test gets: property tests that repeat exactly in CI, no fork handlers in grpc, and ears for Ctrl-C."""

import gc
import os
import signal
import sys

from hypothesis import HealthCheck, settings

# Before the first import of grpc: its fork handlers take a lock that a fork elsewhere could wait on for ever.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# Nor what its C core says of connections that a test ends: it would stand between the dots of a run.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# The suite starts hundreds of interpreters, which keep what they compile even where an environment says not to.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts what it puts into its background deaf to Ctrl-C, and so would be all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline, since timing is never a claim of ours; a slow machine is no reason to fail a property either.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
# Elsewhere every run draws others; here they are always the same, so there are more of them.
settings.register_profile(
    "ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True, max_examples=100
)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


def pytest_collection_finish() -> None:
    # Benches collect garbage before they measure: a tenth of a second each time with 4,500 tests on the heap.
    gc.freeze()
