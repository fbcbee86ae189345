"""The compiled loops of Gaussian processes on landmarks: plain functions of arrays, independent of ``_kernels.py``.

Of the rows ``Z`` (n, k), in units of the length scales, some (m,) are landmarks. ``C`` (n, m) has the kernels
``exp(-|z_i - z_j|^2 / 2)`` between rows and landmarks, ``K`` (m, m) those among landmarks.
"""

import math
from typing import Any

import numpy as np

from ._compiled import compiled

_kernel: Any = compiled(nogil=True, error_model="numpy")

# Added to the kernel matrix of the landmarks, whose rows may be equal or nearly so; and the least noise over amplitude
# for every row, which keeps rounding of sums over rows, divided by both, below 1.
JITTER, LEAST = 1e-5, 1e-9
# The logarithms of length scales (in deviations, over the root of the number of parents) and of noise over amplitude
# are normal beforehand, so weakly that a handful of rows decides; without that length scales of parents that do not
# matter would go to infinity, and ten rows would be fitted without noise.
SCALE, NOISE, WIDTH = math.log(1.5), math.log(0.3), 2.0
# The longest step of a climb, in logarithms.
LONGEST = 1.5


@_kernel
def kernels(P, Q, out):
    """Kernels between the rows of ``P`` (n, k) and of ``Q`` (m, k), into ``out`` (n, m), to 12 digits.

    Less than exp(-40) is nothing; products of it would be denormal numbers, which are slow.
    """
    n, k = P.shape
    m, places = len(Q), np.ascontiguousarray(Q.T)
    for i in range(n):
        row = out[i]
        for j in range(m):
            row[j] = 0.0
        for q in range(k):
            here, there = P[i, q], places[q]
            for j in range(m):
                row[j] += (here - there[j]) ** 2
        # exp(x) = exp(x / 1024)^1024, by a series and ten squares: unlike a call of exp this is vectorised.
        for j in range(m):
            x = max(row[j] * -0.5, -40.0) / 1024.0
            e = 1.0 + x * (1.0 / 6.0) * (1.0 + x * (1.0 / 7.0))
            e = 1.0 + x * (1.0 / 4.0) * (1.0 + x * (1.0 / 5.0) * e)
            e = 1.0 + x * (1.0 + x * (1.0 / 2.0) * (1.0 + x * (1.0 / 3.0) * e))
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            row[j] = e


@_kernel
def inverse_root(A):
    """``L^-1`` (m, m) where ``A = L L'``, and ``ln det A``; nan if A is not positive definite. ``A`` is overwritten."""
    m, log_det = len(A), 0.0
    inverse = np.zeros((m, m))
    for i in range(m):
        # Row i of L': what is below in A becomes what the rows so far leave of it.
        root = math.sqrt(A[i, i]) if A[i, i] > 0.0 else math.nan
        log_det += 2.0 * math.log(root)
        for j in range(i, m):
            A[i, j] /= root
        for p in range(i + 1, m):
            share = A[i, p]
            for j in range(p, m):
                A[p, j] -= share * A[i, j]
    for i in range(m):
        row = inverse[i]
        row[i] = 1.0
        for p in range(i):
            share, above = A[p, i], inverse[p]
            for j in range(p + 1):
                row[j] -= share * above[j]
        for j in range(i + 1):
            row[j] /= A[i, i]
    return inverse, log_det


@_kernel
def solve(K, S, c, rho):
    """Least squares on kernels with ``S = C'C`` and ``c = C'y``: the process of the landmarks.

    With ``K + JITTER I = L L'`` and ``B = I + L^-1 S L^-T / rho``: ``|Q + rho I| = rho^n |B|``, ``Q = C (L L')^-1 C'``.

    Returns
    -------
    root : array of shape (m, m)
        ``L^-1``.
    inverse : array of shape (m, m)
        ``(rho L L' + S)^-1``.
    weights : array of shape (m,)
        ``b = inverse c``, which has the least ``|y - C b|^2 + rho b'L L'b``.
    rough : float
        ``b'L L'b``.
    log_det : float
        ``ln |B|``.
    freedom : float
        ``tr Q (Q + rho I)^-1``.
    """
    m = len(c)
    jittered = K.copy()
    for j in range(m):
        jittered[j, j] += JITTER
    root, _ = inverse_root(jittered)
    B = root @ S @ root.T
    for i in range(m):
        for j in range(m):
            B[i, j] /= rho
        B[i, i] += 1.0
    outer, log_det = inverse_root(B)
    half = outer @ root
    inverse = half.T @ half
    freedom = 0.0
    for i in range(m):
        for j in range(m):
            inverse[i, j] /= rho
            freedom += inverse[i, j] * S[i, j]
    weights = inverse @ c
    rough = 0.0
    for i in range(m):
        rough += JITTER * weights[i] * weights[i]
        for j in range(m):
            rough += weights[i] * K[i, j] * weights[j]
    return root, inverse, weights, rough, log_det, freedom


@_kernel
def height_of(left, rough, log_det, total, n, rho):
    """-2 ln likelihood, with the best amplitude, up to a constant, and ``n`` times that amplitude.

    ``y'(Q + rho I)^-1 y = left / rho + rough``, with the sum of squared residuals ``left`` from the rows themselves:
    differences of ``total = y'y`` and what is explained would be rounding where little is left.
    """
    # Few of the rows may all be equal.
    quadratic = max(left, 1e-12 * max(total, 1e-12 * n)) / rho + rough
    return n * math.log(quadratic * rho / n) + log_det, quadratic


@_kernel
def ratio(t, n):
    """Noise over amplitude for the last of the numbers ``t``."""
    return math.exp(t[-1]) + LEAST * n


@_kernel
def before(k):
    """What the logarithms (k + 1,) of ``k`` length scales and of noise over amplitude are beforehand, on average."""
    t = np.empty(k + 1)
    for q in range(k):
        t[q] = SCALE + 0.5 * math.log(k)
    t[k] = NOISE
    return t


@_kernel
def likelihood(inputs, y, places, t, C, D):
    """``-2 ln p(y)`` less twice the logarithm of the prior, and its slope (k + 1,), at logarithms ``t`` (k + 1,).

    They are those of the length scales of ``inputs`` (n, k) and of noise over amplitude. ``y`` (n,) is centred;
    landmarks are at ``places`` (m,). ``C`` and ``D`` (n, m) are overwritten.
    """
    (n, k), m = inputs.shape, len(places)
    rho = ratio(t, n)
    Z, centres, K = np.empty((n, k)), np.empty((m, k)), np.empty((m, m))
    for q in range(k):
        scale = math.exp(-t[q])
        for i in range(n):
            Z[i, q] = inputs[i, q] * scale
        for j in range(m):
            centres[j, q] = Z[places[j], q]
    kernels(Z, centres, C)
    kernels(centres, centres, K)
    S, c, total = C.T @ C, y @ C, 0.0
    for i in range(n):
        total += y[i] * y[i]
    root, inverse, b, rough, log_det, freedom = solve(K, S, c, rho)
    error, left = y - C @ b, 0.0
    for i in range(n):
        left += error[i] * error[i]
    height, quadratic = height_of(left, rough, log_det, total, n, rho)
    # Derivatives by C and K: d ln|rho K + C'C| = tr inverse (rho dK + 2 C'dC) and
    # d quadratic = -2 (y - C b)' dC b / rho + b' dK b; and dC_ij / d ln l_q = C_ij (z_iq - z_jq)^2.
    share = n / quadratic
    np.dot(C, inverse, D)
    sums, across, w = np.zeros((k, m)), np.ascontiguousarray(centres.T), np.empty(m)
    for i in range(n):
        pull = share / rho * error[i]
        for j in range(m):
            w[j] = 2.0 * C[i, j] * (D[i, j] - pull * b[j])
        for q in range(k):
            for j in range(m):
                sums[q, j] += w[j] * (Z[i, q] - across[q, j]) ** 2
    plain = root.T @ root
    for i in range(m):
        for j in range(m):
            w[j] = K[i, j] * (rho * inverse[i, j] - plain[i, j] + share * b[i] * b[j])
        for q in range(k):
            for j in range(m):
                sums[q, j] += w[j] * (centres[i, q] - across[q, j]) ** 2
    slope = np.empty(k + 1)
    for q in range(k):
        slope[q] = 0.0
        for j in range(m):
            slope[q] += sums[q, j]
    slope[k] = (n - freedom + share * (rough - quadratic)) * math.exp(t[k]) / rho
    prior = before(k)
    for q in range(k + 1):
        away = (t[q] - prior[q]) / WIDTH
        height += away * away
        slope[q] += 2.0 * away / WIDTH
    return height, slope


@_kernel
def climb(inputs, y, places, t, H, close):
    """The minimum of :func:`likelihood` next to ``t``, by steps of Broyden, Fletcher, Goldfarb and Shanno.

    Every step is downhill; the last would gain less than ``close``. ``H`` (k + 1, k + 1) is a guess of the inverse of
    the second derivatives, 0 if there is none. Returns where, how high, and such an inverse.
    """
    C, D = np.empty((len(y), len(places))), np.empty((len(y), len(places)))
    size, H = len(t), H.copy()
    height, slope = likelihood(inputs, y, places, t, C, D)
    fresh, steepest, step, lean = H[0, 0] == 0.0, 0.5, np.empty(size), np.empty(size)
    for i in range(size):
        steepest = max(steepest, abs(slope[i]))
    for i in range(size):
        H[i, i] += 0.5 / steepest if fresh else 0.0
    for _ in range(60):
        longest, gain = LONGEST, 0.0
        for i in range(size):
            step[i] = 0.0
            for j in range(size):
                step[i] -= H[i, j] * slope[j]
            longest = max(longest, abs(step[i]))
        for i in range(size):
            step[i] *= LONGEST / longest
            gain -= step[i] * slope[i]
        if not gain >= close:
            break
        there, new_slope = likelihood(inputs, y, places, t + step, C, D)
        for _ in range(11):
            if there <= height - 1e-4 * gain:
                break
            # The vertex of the parabola through both heights and the slope here.
            shrink = min(max(0.5 * gain / (there - height + gain), 0.1), 0.5)
            gain *= shrink
            for i in range(size):
                step[i] *= shrink
            there, new_slope = likelihood(inputs, y, places, t + step, C, D)
        if not there <= height - 1e-4 * gain:
            break
        turn = new_slope - slope
        t, height, slope = t + step, there, new_slope
        bend = turned = moved = 0.0
        for i in range(size):
            bend += step[i] * turn[i]
            turned += turn[i] * turn[i]
            moved += step[i] * step[i]
        if bend <= 1e-9 * math.sqrt(turned * moved):
            continue
        if fresh:
            fresh = False
            for i in range(size):
                H[i, i] = bend / turned
        # H <- (I - s u' / b) H (I - u s' / b) + s s' / b with step s, turn u and b = s'u.
        along = bend
        for i in range(size):
            lean[i] = 0.0
            for j in range(size):
                lean[i] += H[i, j] * turn[j]
            along += turn[i] * lean[i]
        for i in range(size):
            for j in range(size):
                H[i, j] += (along * step[i] * step[j] / bend - step[i] * lean[j] - lean[i] * step[j]) / bend
    return t, height, H
