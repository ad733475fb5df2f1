"""`fairlead health`: one question to the standard gRPC health service."""

import click

from fairlead_cli.addresses import json_option, master_option


@click.command()
@master_option
@json_option
def health(master: str, *, as_json: bool) -> None:
    """Ask whether the master serves.

    Exits with 0 if it does and with 3 if it does not or nobody answers, as container health checks want it.
    """
    from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
    from grpc_health.v1.health_pb2_grpc import HealthStub

    from fairlead_cli.connection import connected
    from fairlead_cli.errors import Unreachable
    from fairlead_cli.printing import print_json

    with connected(master) as connection:
        answer = connection.call(HealthStub(connection.channel).Check, HealthCheckRequest())
    status = HealthCheckResponse.ServingStatus.Name(answer.status)
    if answer.status != HealthCheckResponse.SERVING:
        raise Unreachable(master, f"it answers {status}")
    if as_json:
        print_json({"master": master, "status": status})
    else:
        print(f"{master} {status}")
