#!/usr/bin/env python3
"""CuPy: Fourier transforms of several sizes, sorts, sums and elementwise kernels in a loop; a value comes to the host in
each round. Prints a digest of the sorted numbers, and how far the transforms are from the whole numbers that they were of.
"""
import hashlib

import cupy

ROUNDS = 60


def main():
    state = hashlib.sha256()
    worst = 0.0
    numbers = (cupy.arange(1 << 18, dtype=cupy.int64) * 2654435761) % 1000003
    for r in range(ROUNDS):
        n = 1 << (12 + r % 4)
        signal = (numbers[: 8 * n] % 256).astype(cupy.float32).reshape(8, n)
        back = cupy.fft.ifft(cupy.fft.fft(signal)).real
        worst = max(worst, float(cupy.abs(back - signal).max()))
        numbers = (cupy.sort(numbers) * 31 + cupy.cumsum(numbers) + r) % 1000003
        state.update(int(numbers.sum()).to_bytes(8, "little"))
    state.update(cupy.sort(numbers).get().tobytes())
    print("cupy", state.hexdigest()[:16], "transforms exact" if worst < 0.01 else f"transforms off by {worst}")


main()
