"""Entry of the executor process: ``python -I -S main.py SETTINGS``, where SETTINGS is one JSON object.

Started by ``client`` and by nobody else. It runs without site-packages, so it is told where our own packages are.
"""

import json
import sys


def main() -> int:
    """Run an executor until it is told to end, or has had neither agent nor tasks for a while."""
    settings = json.loads(sys.argv[1])
    sys.path[:0] = settings.pop("import_roots")
    from fairlead_agent.executor.server import serve

    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
