"""Ends this process when its parent is gone, whatever became of it."""

import os
import signal
import sys
import threading


def stop_with_parent() -> None:
    """Send ourselves SIGTERM when stdin, a pipe that only the parent holds open, reaches its end.

    A thread that waits in a read: it costs nothing, and unlike a signal at the parent's death it does not depend on
    which of the parent's threads started us.
    """

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent watch", daemon=True).start()
