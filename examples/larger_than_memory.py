"""Learn from chunks of a table that is never in memory as a whole."""

import numpy as np

from vec2dag import ALIAS, Moments, simulate

rng = np.random.default_rng(0)
table = simulate.linear_gaussian(d=10, k=2, n=20_000, rng=rng)

statistics: Moments | None = None
for chunk in np.array_split(table.X, 20):
    part = Moments.of(chunk, table.names)
    statistics = part if statistics is None else statistics.merge(part)

model = ALIAS(criterion="bic-nv", random_state=0).fit(statistics)
print(model.cpdag_)
