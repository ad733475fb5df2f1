"""All properties, in the order of the papers' table; those that only paper 000 has come last."""

from typing import Final

from fairlead_lab.properties.definitions.one_allocation import (
    envy_freeness,
    pareto_efficiency,
    sharing_incentive,
)
from fairlead_lab.properties.definitions.one_resource import (
    bottleneck_fairness,
    local_fairness,
    single_resource_fairness,
)
from fairlead_lab.properties.definitions.two_allocations import (
    draw_departures,
    draw_growths,
    draw_misreports,
    draw_rescalings,
    population_monotonicity,
    resource_monotonicity,
    scale_invariance,
    strategy_proofness,
)
from fairlead_lab.properties.model import Property, Setting

PROPERTIES: Final = (
    Property("sharing incentive", sharing_incentive),
    Property("strategy-proofness", strategy_proofness, draw_misreports),
    Property("envy-freeness", envy_freeness),
    Property("Pareto efficiency", pareto_efficiency),
    Property("single-resource fairness", single_resource_fairness, setting=Setting.ONE_RESOURCE),
    Property("bottleneck fairness", bottleneck_fairness, setting=Setting.ONE_BOTTLENECK),
    Property("population monotonicity", population_monotonicity, draw_departures),
    Property("resource monotonicity", resource_monotonicity, draw_growths),
    Property("scale invariance", scale_invariance, draw_rescalings),
    Property("local fairness", local_fairness, setting=Setting.ONE_RESOURCE),
)
