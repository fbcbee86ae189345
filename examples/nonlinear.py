"""Nonlinear data: Gaussian processes, kernel ridge, and boosted trees as regressions of the same score."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge

from vec2dag import ALIAS, SklearnRegression, metrics, simulate

rng = np.random.default_rng(1)
data = simulate.simulate(simulate.erdos_renyi(5, 1, rng), simulate.gaussian_process, n=300, rng=rng)

trees = HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=10)
regressions = {
    "linear": "linear",
    "Gaussian process": "gp",
    "kernel ridge": KernelRidge(kernel="rbf", alpha=0.5, gamma=0.5),
    # Trees can fit noise: score them on rows that they have not seen.
    "boosted trees, cross-fitted": SklearnRegression(trees, cv=3),
}
for name, regression in regressions.items():
    model = ALIAS(regression=regression, random_state=0).fit(data.X, names=data.names)
    print(
        f"{name}: SHD {metrics.shd(data.A, model.adjacency_raw_)}, "
        f"{metrics.shd(data.A, model.adjacency_matrix_)} after pruning, {model.search_.fits} regressions"
    )
