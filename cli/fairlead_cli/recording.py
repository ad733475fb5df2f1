"""`fairlead replay-recording`: what a master decided, decided again."""

import sys
from pathlib import Path

import click

from fairlead_cli.addresses import json_option
from fairlead_cli.errors import EXIT_INVALID


@click.command("replay-recording")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def replay_recording(file: Path, *, as_json: bool) -> int:
    """Give a master's recorded events to a core again.

    FILE was written by `fairlead master --record`. The core is deterministic: they are the actions the recorded master took. With --json one document a line:
    the time, the event and the actions.
    """
    from fairlead_master.recording import RecordingError, play

    try:
        for now_ms, event, orders in play(file):
            if as_json:
                _print_document(now_ms, event, orders)
            else:
                print(f"{now_ms} {event}")
                for order in orders:
                    print(f"  -> {order}")
    except RecordingError as error:
        print(f"fairlead: {error}", file=sys.stderr)
        return EXIT_INVALID
    return 0


def _print_document(now_ms: int, event: object, orders: object) -> None:
    import json

    from fairlead_master.recording import encode

    print(json.dumps({"now_ms": now_ms, "event": encode(event), "actions": encode(orders)}))
