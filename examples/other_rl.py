"""Train another algorithm on the environment: soft actor-critic, which learns from every graph it has ever seen.

Any algorithm for continuous actions can play. On-policy ones, of sb3-contrib for instance, also fit into the estimator:
``ALIAS(algorithm=vec2dag.sb3.OnPolicy(sb3_contrib.TRPO))``.
"""

import sys

import numpy as np

from vec2dag import Score, metrics, simulate, vec2dag

try:
    from stable_baselines3 import SAC

    from vec2dag.sb3 import DagVecEnv
except ImportError:
    print('skipped, Stable-Baselines3 is missing: pip install "vec2dag[sb3]"')
    sys.exit()

data = simulate.linear_gaussian(d=5, k=1, n=500, rng=np.random.default_rng(0))
score = Score(data.X, "linear", "bic-ev")
env = DagVecEnv(score, num_envs=16)

# gamma: an episode is one step, so there is no future to discount.
model = SAC(
    "MlpPolicy", env, gamma=0.0, ent_coef=0.01, learning_rate=0.003, learning_starts=160, gradient_steps=4, seed=0
)
model.learn(1600)

mean, _ = model.predict(env.reset(), deterministic=True)
for name, A in {"best DAG met": env.best_A, "decoded mean": vec2dag(mean[0])}.items():
    print(f"{name}: score {score(A):.4f}, SHD {metrics.shd(data.A, A)}")
