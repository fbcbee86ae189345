"""Graphs in DoWhy, by DoWhy itself; in an environment of its own: pip install dowhy pytest, and this package."""

from __future__ import annotations

import numpy as np
import pytest

from vec2dag import ALIAS, interop

pytest.importorskip("dowhy")
pandas = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

NAMES = ("age", "body weight", "blood.pressure", "risk")


@pytest.fixture(scope="module")
def frame():
    """age -> pressure <- weight, pressure -> risk, age -> risk: the effect of pressure on risk is 0.8, given age."""
    rng = np.random.default_rng(3)
    age, weight, noise, more = rng.standard_normal((4, 3000))
    pressure = age + 1.5 * weight + noise
    return pandas.DataFrame(np.column_stack([age, weight, pressure, 0.8 * pressure - 2 * age + more]), columns=NAMES)


@pytest.fixture(scope="module")
def model(frame):
    return ALIAS(random_state=0).fit(frame)


@pytest.mark.parametrize("form", ["networkx", "gml", "model's own"])
def test_effects_are_those_that_made_the_data(frame, model, form):
    from dowhy import CausalModel

    graph = {"networkx": interop.to_dowhy, "gml": interop.to_dowhy_gml, "model's own": lambda m: m.graph_}[form](model)
    causal = CausalModel(data=frame, treatment="blood.pressure", outcome="risk", graph=graph)
    assert set(causal._graph._graph.nodes) >= set(NAMES)
    assert set(causal._graph._graph.edges) >= set(model.graph_.edges)
    estimand = causal.identify_effect(proceed_when_unidentifiable=True)
    assert "age" in estimand.get_backdoor_variables()
    estimate = causal.estimate_effect(estimand, method_name="backdoor.linear_regression")
    assert abs(estimate.value - 0.8) < 0.05


def test_names_that_look_like_files_and_other_formats(frame):
    from dowhy import CausalModel

    names = ("a.dot", "b.gml", "graph {x}", 'c"&<d>')
    A = np.triu(np.ones((4, 4)), 1)
    renamed = frame.set_axis(list(names), axis=1)
    for graph in (interop.to_dowhy(A, names), interop.to_dowhy_gml(A, names)):
        causal = CausalModel(data=renamed, treatment="a.dot", outcome='c"&<d>', graph=graph)
        assert {"a.dot", "b.gml", "graph {x}", 'c"&<d>'} <= set(causal._graph._graph.nodes)
        assert causal._graph._graph.has_edge("a.dot", 'c"&<d>')


def test_structural_models(frame, model):
    from dowhy import gcm

    causal = gcm.StructuralCausalModel(interop.to_dowhy(model))
    for node in causal.graph.nodes:
        parents = list(causal.graph.predecessors(node))
        mechanism = gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor()) if parents else gcm.EmpiricalDistribution()
        causal.set_causal_mechanism(node, mechanism)
    gcm.fit(causal, frame)
    gcm.util.general.set_random_seed(0)
    low, high = (
        gcm.interventional_samples(causal, {"blood.pressure": lambda _, x=x: x}, num_samples_to_draw=5000)["risk"]
        for x in (0.0, 1.0)
    )
    assert abs(high.mean() - low.mean() - 0.8) < 0.2
