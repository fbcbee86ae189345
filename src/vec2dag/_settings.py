"""Settings of one axis of the estimator: parameters and no data, as scikit-learn's tools read and set them."""

from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Settings"]


class Settings(BaseEstimator):
    """A small object of parameters: a dataclass whose values are checked when it is made and when they are set.

    ``get_params`` and ``set_params`` are scikit-learn's, so that a grid search reaches ``regression__alpha``.
    """

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse impossible values; the error names the parameter."""

    def set_params(self, **params: Any) -> "Settings":
        """Set parameters; impossible values leave the object as it was."""
        before = dict(vars(self))
        try:
            super().set_params(**params)
            self.check()
        except BaseException:
            self.__dict__.update(before)
            raise
        return self
