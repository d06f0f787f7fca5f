"""A lower bound of what a device sends or receives for a matrix product, with any algorithm."""

from __future__ import annotations


def least_words(m: int, k: int, n: int, devices: int) -> tuple[float, int]:
    """Return the fewest words that a device sends or receives to multiply (m, k) by (k, n).

    The second result is the regime: how many of the three dims are divided by an algorithm that
    attains the bound. The bound holds where each word of the operands and of the result is on one
    device before and after, and devices multiply or hold equal parts, with any memory size.
    Formulas of H. Al Daas, G. Ballard, L. Grigori, S. Kumar and K. Rouse, "Tight Memory-Independent
    Parallel Matrix Multiplication Communication Lower Bounds" (2022), arXiv:2205.13407.

    >>> least_words(16384, 256, 256, 8)
    (57344.0, 1)
    >>> least_words(4096, 256, 4096, 64)
    (229376.0, 2)
    """
    least, middle, most = sorted((m, k, n))
    if devices <= most / middle:
        return (1 - 1 / devices) * middle * least, 1
    if devices <= most * middle / least**2:
        shared = (most * middle * least**2 / devices) ** 0.5
        return 2 * shared - (most + middle) * least / devices, 2
    held = (most * middle + most * least + middle * least) / devices
    return 3 * (most * middle * least / devices) ** (2 / 3) - held, 3
