"""Confidence and long tables: tables, weights, files and checkpoints that once misled them."""

import json

import numpy as np
import pytest

from vec2dag import ALIAS, Knowledge, Moments, Score, bootstrap, posterior
from vec2dag._checks import DataWarning
from vec2dag.confidence import effects
from vec2dag.confidence.resampling import Blocks
from vec2dag.files.streams import TableFile
from vec2dag.files.tables import write_table


@pytest.fixture
def X(rng):
    """A chain of three columns, and one more (200, 4)."""
    X = rng.standard_normal((200, 4))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return X


def samples_of_blocks(X, rng, method):
    """Moments of 30 samples of blocks of a row each."""
    blocks = Blocks.of(X, Moments.of(X), rng)
    return [blocks.draw(method, rng) for _ in range(30)]


@pytest.mark.parametrize("method", ["resample", "subsample"])
def test_a_sample_of_blocks_without_the_only_other_value_is_repeated(X, rng, method):
    X[:, 3] = 0.0
    X[7, 3] = 1.0
    # In a sample that has the 1 the variance is at least 1/n (1 - 1/n); in others it is rounding.
    least = min(sample.covariance[3, 3] for sample in samples_of_blocks(X, rng, method))
    assert least > 0.5 / len(X)


def test_a_checkpoint_knows_all_that_is_known(X, tmp_path):
    *most, one, other = [f"x{i} -> x{j}" for i in range(4) for j in range(4) if i != j]
    file = tmp_path / "samples.log"
    bootstrap(ALIAS(knowledge=Knowledge(forbidden=[*most, one])), X, 3, random_state=0, checkpoint=file)
    with pytest.raises(ValueError, match="different: model"):
        bootstrap(ALIAS(knowledge=Knowledge(forbidden=[*most, other])), X, 3, random_state=0, checkpoint=file)


def test_a_checkpoint_tells_functions_of_the_same_name_apart(X, tmp_path):
    keep, remove = (lambda X, A: A), (lambda X, A: 0 * A)
    file = tmp_path / "samples.log"
    bootstrap(ALIAS(prune=keep), X, 3, random_state=0, n_jobs=1, checkpoint=file)
    with pytest.raises(ValueError, match="different: model"):
        bootstrap(ALIAS(prune=remove), X, 3, random_state=0, n_jobs=1, checkpoint=file)


def test_total_effects_of_a_bootstrap_are_of_linear_graphs_too(X):
    model = ALIAS(regression="additive", random_state=0)
    with pytest.raises(ValueError, match="linear"):
        effects(model.fit(X), 0, 2)
    with pytest.raises(ValueError, match="linear"):
        effects(bootstrap(model, X, 2, random_state=0, n_jobs=1), 0, 2)


def test_a_path_whose_effects_cancel_is_a_path():
    W = np.array([[0, 1.0, -1.0], [0, 0, 1.0], [0, 0, 0]])
    found = effects((W != 0, W), 0, 2)
    assert (found.value, found.share) == (0.0, 1.0)


@pytest.mark.parametrize("method", ["resample", "subsample", "parametric"])
def test_shares_do_not_depend_on_the_order_or_sign_of_columns(X, method):
    order, signs = np.array([2, 0, 3, 1]), np.array([1.0, -1.0, 1.0, 1.0])
    share = bootstrap(ALIAS(), X, 40, method, random_state=0).adjacent
    other = bootstrap(ALIAS(), (X * signs)[:, order], 40, method, random_state=0).adjacent
    np.testing.assert_allclose(other, share[np.ix_(order, order)])


def test_weights_of_the_consensus_are_in_the_units_of_the_table_of_pairs(X, tmp_path):
    weights = {}
    for unit in (1.0, 1000.0):
        found = bootstrap(ALIAS(standardize=True), X * [unit, 1, 1, 1], 10, random_state=0)
        found.save(tmp_path)
        weights[unit] = [
            edge["weight"] for edge in json.loads((tmp_path / "consensus/graph.json").read_text())["edges"]
        ]
    assert weights[1000.0] == pytest.approx(weights[1.0])


def test_every_share_can_be_the_threshold_of_what_is_saved(X, tmp_path):
    found = bootstrap(ALIAS(), X, 5, random_state=0)
    assert found.consensus(1.0).any()
    assert found.save(tmp_path, threshold=1.0)


def test_rows_by_weight_are_too_few_as_rows_are(X):
    with pytest.warns(DataWarning, match="rows for 4 columns"):
        ALIAS(random_state=0).fit(Moments.of(X, weights=np.full(len(X), 3.7 / len(X))))


@pytest.mark.filterwarnings("ignore::vec2dag._checks.DataWarning")
def test_fewer_rows_by_weight_than_columns_can_be_drawn(X):
    moments = Moments.of(X, weights=np.full(len(X), 3.7 / len(X)))
    assert bootstrap(ALIAS(), moments, 3, "parametric", random_state=0).n_samples == 3


@pytest.mark.parametrize("weight", [1e200, 1e308])
def test_weights_beyond_counting_are_refused(X, weight):
    with pytest.raises(ValueError, match="weights"):
        Moments.of(X, weights=np.full(len(X), weight))


def test_a_dask_frame_of_nothing_but_weights_is_refused():
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(pandas.DataFrame({"w": [1.0, 2.0, 3.0]}), npartitions=1)
    with pytest.raises(ValueError, match="only one"):
        Moments.from_dask(frame, weights="w")


def test_columns_that_change_places_between_two_readings_are_noticed(X, tmp_path, monkeypatch):
    file = tmp_path / "table.csv"
    write_table(file, X, list("abcd"))
    read = Moments.of_file.__func__

    def read_and_rewrite(cls, *arguments, **options):
        moments = read(cls, *arguments, **options)
        write_table(file, X[:, ::-1], list("dcba"))
        return moments

    monkeypatch.setattr(Moments, "of_file", classmethod(read_and_rewrite))
    with pytest.raises(ValueError, match="changed meanwhile"):
        bootstrap(ALIAS(), TableFile(file), 3, random_state=0)


def test_one_sample_of_the_posterior_is_not_a_matter_of_time(X, rng):
    with pytest.warns(UserWarning, match="too short"):
        assert len(posterior(Score(X), rng=rng, n_samples=1, chains=1)) == 1
