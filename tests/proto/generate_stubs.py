"""Generates the Python stubs of the wire schema; run by the schema compiler's own environment.

Both `make protos` and the drift test call it, so that what is committed and what is compared can only be made
in one way. It is a script and not a test: it needs `grpc_tools`, which the project's environment lacks.
"""

import sys
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

SCHEMA_ROOT = Path(__file__).resolve().parents[2] / "proto"
WELL_KNOWN_TYPES = Path(grpc_tools.__file__).parent / "_proto"


def main(output: Path) -> int:
    """Write the stubs below the folder `output` and return the compiler's exit code (0 is success)."""
    output.mkdir(parents=True, exist_ok=True)
    paths = [f"--proto_path={SCHEMA_ROOT}", f"--proto_path={WELL_KNOWN_TYPES}"]
    outputs = [f"--{kind}_out={output}" for kind in ("python", "pyi", "grpc_python")]
    schema = [
        str(path.relative_to(SCHEMA_ROOT)) for path in sorted(SCHEMA_ROOT.glob("fairlead_proto/v1/*.proto"))
    ]
    return int(protoc.main(["protoc", *paths, *outputs, *schema]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
