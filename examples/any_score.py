"""Search with a score of your own: any function of an adjacency matrix.

Here: BIC with a bonus for graphs in which the first variable has no causes.
"""

import numpy as np

from vec2dag import PPO, Score, policy_gradient, simulate

rng = np.random.default_rng(0)
data = simulate.linear_gaussian(d=6, k=1, n=500, rng=rng)
bic = Score(data.X, "linear", "bic-nv")


def my_score(A: np.ndarray) -> float:
    return float(bic(A)) - 0.1 * A[:, 0].sum()


found = policy_gradient(my_score, d=6, rng=rng, algorithm=PPO(n_steps=400))
print(f"score {found.score:.4f} after {found.n_iter} steps ({found.stopped})")
print("edges:", [(int(i), int(j)) for i, j in np.argwhere(found.A)])
