# One image for every role: the command says which. Any base with python3 (3.11 or later, with venv) will do:
#   docker build --build-arg BASE_IMAGE=debian-with-python -t fairlead:local .
# A host that reaches packages through a mirror hands its pip.conf in, where it stays out of every layer:
#   docker build --secret id=pip,src=$HOME/.config/pip/pip.conf -t fairlead:local .
# and, if the mirror's certificate is signed by an authority of its own, that one's PEM file too: --secret id=ca,src=ca.pem
ARG BASE_IMAGE=python:3.11-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /src
# The lock files change least, so they come first: a change of the code does not install the dependencies again.
COPY requirements.lock requirements-runtime.lock ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=secret,id=ca,target=/run/secrets/ca.pem \
    if [ -s /run/secrets/ca.pem ]; then export PIP_CERT=/run/secrets/ca.pem; fi \
 && python3 -m venv /opt/fairlead \
 && /opt/fairlead/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-runtime.lock \
 && python3 -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN /opt/build/bin/python -m pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . \
 && /opt/fairlead/bin/python -m pip install --no-cache-dir --no-deps --no-index /wheels/*.whl

FROM ${BASE_IMAGE}
COPY --from=build /opt/fairlead /opt/fairlead
COPY examples /opt/fairlead/examples
# grpc's fork handlers only add a lock to wait on: no code of ours forks with a channel open.
ENV PATH=/opt/fairlead/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GRPC_ENABLE_FORK_SUPPORT=0
# The registry of a master, the checkpoint and the sandboxes of an agent. Without a volume they end with the container.
VOLUME /var/lib/fairlead
# Root stays the user: an agent creates cgroups and moves tasks into them, which needs root where that is allowed at
# all. A master needs no privilege: run it with --user and a volume that user may write.
EXPOSE 5050
# Without FAIRLEAD_MASTER this asks the master in this container; an agent's check is in docker-compose.yml.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["fairlead", "health"]
ENTRYPOINT ["fairlead"]
CMD ["--help"]
