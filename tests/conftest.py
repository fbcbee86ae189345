"""Options and fixtures shared by the tests."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# The same examples in every run: what fails, fails for everybody. Others: pytest --hypothesis-profile=default
settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="also run the tests marked slow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds; run with --run-slow")
    if getattr(config.option, "numprocesses", None):
        compile_kernels()


def compile_kernels() -> None:
    """Once, before several workers start: each would otherwise compile all kernels for itself."""
    from vec2dag import ALIAS
    from vec2dag.columns import coded

    X = np.random.default_rng(0).standard_normal((60, 14))
    ALIAS("bic-ev").fit(X)
    ALIAS("bic-nv").fit(X)
    words = {name: np.where(column > 0, "a", "b") for name, column in zip("uvw", X.T[:3], strict=True)}
    for table in (words, words | {"x": X[:, 3]}):
        ALIAS().fit(coded(table))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--run-slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: run with --run-slow (make test-all)"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20250)


def shared_folder() -> Path:
    """Folder of the shared sets; without it the test is skipped."""
    if not SHARED.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED


@pytest.fixture
def shared_linear():
    """Loader of the shared linear sets: ``shared_linear("er2_d10", seed) -> (X, A)``."""
    folder = shared_folder()

    def load(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        with np.load(folder / f"lin_{name}_n1000_s{seed}.npz") as file:
            return file["X"], (file["B"] != 0).astype(np.uint8)

    return load
