"""Methods that no package offers, written from their papers: each is a function ``(X, rng, **settings) -> A``.

They run with one BLAS thread: the last bits of a sum depend on the number of threads, and the answers on those bits.
"""
