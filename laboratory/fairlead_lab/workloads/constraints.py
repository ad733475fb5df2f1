"""Where a trace's tasks may run, from the traces' own words to constraints on the attributes of nodes.

**GPU models** (Alibaba): ``V100M16|V100M32`` is "attribute ``model`` is one of these".

**PBS node specifications** (MetaCentrum 2013): ``2:ppn=8:x86_64:cl_zegox`` asks for two nodes with the properties behind
the numbers. Properties that choose among the nodes of that trace become constraints: a cluster's name (``cl_zewura``), a
number of cores a node (``nodecpus80``, which only zewura has), a city, and a host's name. A ``^`` in front means
"not". The nodes file of the trace numbers hosts from 00 where the site counted from 1, so ``zewura12.cerit-sc.cz`` is
``hostname=zewura11``. What all its nodes have (``x86_64``, ``nfs4``, ``debian``, ``linux``, ``infiniband``) chooses nothing
and is passed over, as is ``#excl`` (the whole node: the demand is what was asked for). Of a request in several parts only
what each of them asks is kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from fairlead_proto.tasks import Constraint, Operator
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle, Job

MODEL: Final = "model"
"""The attribute that says of which kind a node is, in the nodes files of both traces."""

_CLUSTERS_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "brno": ("zegox", "zewura"),
    "nodecpus12": ("zegox",),
    "nodecpus80": ("zewura",),
}
"""Properties of the site that stand for its clusters: both stand in Brno."""
_CLUSTER: Final = re.compile(r"cl_([a-z0-9]+)")
_HOST: Final = re.compile(r"(?:host=)?(zewura|zegox)([0-9]{1,2})(?:\.cerit-sc\.cz)?")


def gpu_models(text: str) -> tuple[Constraint, ...]:
    """The constraint for models joined by ``|``; an empty text asks for none."""
    models = tuple(sorted({word.strip() for word in text.split("|") if word.strip()}))
    return (Constraint(MODEL, Operator.EQUALS, models),) if models else ()


@lru_cache(maxsize=1024)
def node_spec(text: str) -> tuple[Constraint, ...]:
    """The constraints of a PBS node specification; see the module's text."""
    parts = [part.split(":") for part in text.split("#", maxsplit=1)[0].split("+")]
    asked = set(parts[0]).intersection(*parts[1:])
    # Sorted, so that equal wishes are equal constraints and hence one class of tasks.
    found = {constraint for word in asked if (constraint := _property(word)) is not None}
    return tuple(sorted(found, key=str))


def _property(word: str) -> Constraint | None:
    operator = Operator.NOT_EQUALS if word.startswith("^") else Operator.EQUALS
    word = word.removeprefix("^")
    if word in _CLUSTERS_WITH:
        return Constraint(MODEL, operator, _CLUSTERS_WITH[word])
    if cluster := _CLUSTER.fullmatch(word):
        return Constraint(MODEL, operator, (cluster[1],))
    if host := _HOST.fullmatch(word):
        return Constraint("hostname", operator, (f"{host[1]}{int(host[2]) - 1:02d}",))
    return None


def keep_known(jobs: Iterable[Job], nodes: Sequence[Node]) -> tuple[list[Job], Counter[str]]:
    """The jobs without those constraints that these nodes know nothing of.

    A trace may be simulated on nodes of another make, which have no such attribute: a constraint on it would refuse every
    job that has one. Dropped are constraints on an attribute that no node has, and those that ask for hosts none of which
    is there. A constraint on an attribute that some node has is kept even if no value fits: that is the job's fate.

    Returns:
        The jobs, and how many tasks lost each constraint, by its text: to be told, not to be dropped silently.
    """
    attributes = {name for node in nodes for name in node.attributes}
    hosts = {node.name for node in nodes}
    dropped: Counter[str] = Counter()

    def knows(constraint: Constraint) -> bool:
        if constraint.attribute == "hostname":
            return not hosts.isdisjoint(constraint.values)
        return constraint.attribute in attributes

    def cleaned(bundle: Bundle) -> Bundle:
        kept = tuple(constraint for constraint in bundle.constraints if knows(constraint))
        for constraint in bundle.constraints:
            if constraint not in kept:
                dropped[str(constraint)] += bundle.tasks
        return bundle if len(kept) == len(bundle.constraints) else replace(bundle, constraints=kept)

    result = []
    for job in jobs:
        bundles = tuple(cleaned(bundle) for bundle in job.bundles)
        result.append(job if bundles == job.bundles else replace(job, bundles=bundles))
    return result, dropped
