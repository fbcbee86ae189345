"""Methods of other packages: what holds without the packages, and the contract of each one that is installed.

Nothing of vec2dag is imported, so that these tests can run in the environment of ``make peers`` with pytest added.
"""

import importlib
import importlib.util
import inspect
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.importorskip(
    "experiments", reason="the experiments are beside the package in a checkout, not in a source archive"
)
from experiments import peers
from experiments.peers import METHODS

ROOT = Path(__file__).resolve().parents[1]
# Settings with which three nodes take seconds.
SHORT = {
    "dagma-mlp": {"warm_iter": 2000, "max_iter": 2000},
    "rl-bic": {"steps": 8, "update_every": 1},
    "corl": {"steps": 1},
}
SKELETON = ("marvel", "rsl")
PACKAGES = ("castle", "dagma", "causallearn", "flopsearch", "rcd", "lingam")
SLOW = ("notears-mlp", "dagma-mlp")
every = pytest.mark.parametrize("name", list(METHODS))
slow_ones_marked = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in METHODS]
)


def installed(name):
    """Whether the package of a method is there."""
    return importlib.util.find_spec(METHODS[name].imports[0].split(".")[0]) is not None


def run(name, X, seed=0, **settings):
    """The graph of one method, which is skipped where its package is missing."""
    if not installed(name):
        pytest.skip(f"the package of {name} is not installed (make peers)")
    return METHODS[name].function(X, np.random.default_rng(seed), **{**SHORT.get(name, {}), **settings})


def collider(n=500):
    """0 -> 2 <- 1 with noises of equal variance that are not Gaussian: every method can tell the directions."""
    X = np.random.default_rng(7).uniform(-1.7, 1.7, (n, 3))
    X[:, 2] += 1.2 * X[:, 0] - 1.1 * X[:, 1]
    return X, np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], np.uint8)


def test_the_module_stands_alone():
    program = "import sys, experiments.peers; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"vec2dag", "scipy", "torch", "threadpoolctl", *PACKAGES} & set(loaded)


def test_registry():
    assert set(METHODS) == {
        *("notears", "notears-mlp", "rl-bic", "corl", "pc", "dagma", "dagma-mlp"),
        *("ges", "grasp", "boss", "flop", "marvel", "rsl", "lingam"),
    }
    for peer in METHODS.values():
        first, second, *settings = inspect.signature(peer.function).parameters.values()
        assert (first.name, second.name) == ("X", "rng")
        assert all(setting.default is not inspect.Parameter.empty for setting in settings)
        assert peer.imports
        assert peer.imports[0].split(".")[0] in PACKAGES


@every
def test_without_the_package(name):
    if installed(name):
        pytest.skip(f"the package of {name} is installed")
    package = METHODS[name].imports[0].split(".")[0]
    with pytest.raises(ModuleNotFoundError, match=f"'{package}"):
        METHODS[name].function(collider()[0], np.random.default_rng(0))


def test_global_generators_are_seeded_and_given_back():
    pytest.importorskip("threadpoolctl", reason="comes with scikit-learn")

    def draws(seed):
        with peers._session(np.random.default_rng(seed)):
            return random.random(), np.random.random()  # noqa: NPY002

    before = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert draws(1) == draws(1) != draws(2)
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_progress_is_told_in_lines(capsys):
    steps = peers._told("name", every=0)(range(1, 4))
    assert [next(steps), next(steps)] == [1, 2]
    # A run that is killed now has said that the first iteration is done.
    assert capsys.readouterr().err.startswith("name: iteration 1 of 3, ")
    assert list(steps) == [3]
    assert capsys.readouterr().err.splitlines()[-1].startswith("name: iteration 3 of 3, ")


@slow_ones_marked
def test_direction_determinism_and_untouched_input(name):
    X, expected = collider()
    # Off centre, and read only: several packages centre the table in place.
    X += 3
    X.flags.writeable = False
    if name in SKELETON:
        expected = expected | expected.T
    A = run(name, X)
    assert type(A) is np.ndarray
    assert A.dtype == np.uint8
    np.testing.assert_array_equal(A, expected)
    np.testing.assert_array_equal(run(name, X), A)


@pytest.mark.parametrize("name", ["rl-bic", "corl"])
def test_learners_tell_how_far_they_are(name, capfd):
    run(name, collider(100)[0], steps=2)
    assert f"{name}: iteration 2 of 2" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["rl-bic", "corl"])
def test_gaussian_processes(name):
    X = np.random.default_rng(0).uniform(-2, 2, (100, 2))
    X[:, 1] = X[:, 0] ** 2 + 0.3 * X[:, 1]
    A = run(name, X, regression="GPR", score="BIC_different_var", steps=2)
    assert A.dtype == np.uint8
    if name == "corl":
        # Orders are complete graphs, and nothing is dropped.
        assert A[0, 1] + A[1, 0] == 1


def test_too_many_nodes_for_rl_bic():
    with pytest.raises(ValueError, match="at most 63 nodes"):
        run("rl-bic", np.zeros((10, 64)))


def test_dagma_does_not_remember():
    # The default of s is one list for all runs, and a run that has to retry, as this one, changes the list it is given.
    run("dagma", 40 * collider(200)[0])
    from dagma.linear import DagmaLinear

    assert inspect.signature(DagmaLinear.fit).parameters["s"].default == [1.0, 0.9, 0.8, 0.7, 0.6]


@pytest.mark.parametrize("name", ["grasp", "boss"])
def test_a_higher_price_gives_fewer_edges(name):
    X = np.random.default_rng(1).normal(size=(300, 5))
    X[:, 1:] += 0.15 * X[:, :1]
    assert run(name, X, lambda_value=0.01).sum() > run(name, X, lambda_value=20.0).sum() == 0


def test_rsl_with_a_clique_number():
    X, expected = collider()
    np.testing.assert_array_equal(run("rsl", X, clique_number=2), expected | expected.T)
