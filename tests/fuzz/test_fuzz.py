"""A short run of the fuzzer, and that it notices what it is for."""

import time
import warnings

import numpy as np
import pytest

from . import cases, files, known, parameters
from .properties import Broken, Hang, check_message, quietly, refused, unchanged

CASES, SEED = 400, 0


@pytest.fixture(scope="module")
def summary() -> cases.Summary:
    return cases.run(CASES, SEED)


@pytest.mark.parametrize("kind", cases.KINDS)
def test_random_input_is_answered_or_refused_with_one_sentence(summary, kind):
    assert not [failure for failure in summary.failures if failure.kind == kind], str(summary)


def test_the_short_run_sees_results_and_refusals_of_every_kind(summary):
    for kind in cases.KINDS:
        assert summary.counts[kind, "result"] >= 5, str(summary)
        assert summary.counts[kind, "refused"] >= 5, str(summary)


def test_a_case_is_a_function_of_its_seed_and_number():
    def outcome(case):
        kind, outcome, found = cases.run_case(3, case)
        told = found if isinstance(found, str) and "/" not in found else ""
        # Whether a first graph is ready within a twentieth of a second the machine decides.
        return kind, "" if "'time_budget': 0.05" in told else outcome, told

    assert [outcome(case) for case in range(30)] == [outcome(case) for case in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize("target", parameters.TARGETS)
def test_every_strange_value_of_every_parameter_is_answered_or_refused(target):
    for name in parameters.open_to_change(target):
        for text in parameters.STRANGE:
            parameters.attempt(target, {name: text})


def test_what_is_known_must_hold_in_the_result():
    said = {"required": [("a", "b")], "max_parents": 1}
    known.check_known(said, np.array([[0, 1], [0, 0]]), ["a", "b"])
    for A, names in (([[0, 0], [1, 0]], ["a", "b"]), ([[0, 0], [0, 0]], ["a", "b"]), ([[0, 1], [0, 0]], ["a", "c"])):
        with pytest.raises(Broken, match="contradicts what is known"):
            known.check_known(said, np.array(A), names)
    nodes = ["a", "b", "a[t-1]", "b[t-1]"]
    past_to_present, present_to_past = np.zeros((2, 4, 4), np.uint8)
    past_to_present[2, 0] = present_to_past[0, 2] = 1
    known.check_options({}, 1, past_to_present, nodes)
    with pytest.raises(Broken, match="contradicts time"):
        known.check_options({}, 1, present_to_past, nodes)


def raises(error):
    raise error


@pytest.mark.parametrize(
    "call",
    [
        lambda: raises(RuntimeError("something else")),
        lambda: raises(ValueError("not from the library")),
        lambda: np.zeros(3).reshape(2, 2),
        lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=1),
        lambda: warnings.warn("\x1b[2J", UserWarning, stacklevel=1),
    ],
)
def test_what_must_not_happen_is_noticed(call):
    with pytest.raises(Broken):
        refused(call, ("",))


@pytest.mark.parametrize("sentence", ["short", "x" * 1000, "a sentence of\ntwo lines", "a sentence that names nothing"])
def test_bad_sentences_are_noticed(sentence):
    with pytest.raises(Broken):
        check_message(sentence, ("parameter",))


def test_a_good_sentence_passes():
    check_message("parameter must be positive, got -1", ("parameter",))
    assert refused(lambda: files.read_table("nowhere.csv"), ("nowhere",))[0] == "refused"
    with quietly():
        warnings.warn("a sentence for people", UserWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("before", "after"), [(np.zeros(2), np.array([0.0, -0.0])), (np.zeros(2), np.zeros(2, int)), ([1], [2])]
)
def test_modified_input_is_noticed(before, after):
    unchanged(before, before)
    with pytest.raises(Broken):
        unchanged(before, after)


def test_the_watchdog_ends_a_case_that_hangs(monkeypatch):
    monkeypatch.setattr(cases, "HANGS", 0.05)
    with pytest.raises(Hang), cases.watched():
        time.sleep(10)


@pytest.mark.parametrize(("hangs", "expected"), [(1, "result"), (2, "failed")])
def test_a_case_that_hangs_has_a_second_try(monkeypatch, hangs, expected):
    tries = []

    def sleepy(rng, folder):
        tries.append(rng.random())
        if len(tries) <= hangs:
            raise Hang
        return "result", "slept well"

    monkeypatch.setattr(cases, "KINDS", {"sleepy": (sleepy, 1.0)})
    assert cases.run_case(0, 0)[:2] == ("sleepy", expected)
    assert tries == tries[:1] * 2


def test_the_command_line_is_heard(tmp_path):
    code, said = files.run(["discover", str(tmp_path / "none.csv"), "-o", str(tmp_path)])
    assert code == 2
    assert said.count("\n") == 1
