"""A fuzzer: random tables, files and parameters, and what must hold whatever they are.

``make fuzz N=10000 SEED=0``, or ``python -m tests.fuzz --n 10000 --seed 0``; ``--case K`` runs one case again and shows
all of it. A case is a function of the seed and its number alone.
"""
