#!/usr/bin/env python3
"""2,000 launches of two Triton kernels in eight shapes. Prints sums of whole numbers."""
import torch
import triton
import triton.language as tl

ROUNDS, SHAPES = 125, 8


@triton.jit
def mix(x, n, k, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    mask = at < n
    tl.store(x + at, (tl.load(x + at, mask=mask) * 3 + k) & 1048575, mask=mask)


@triton.jit
def sum_rows(x, sums, columns, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0)
    tl.store(sums + row, tl.load(sums + row) + tl.sum(values, 0))


def main():
    columns, rows = 1000, 64 * SHAPES
    x = torch.arange(rows * columns, device="cuda", dtype=torch.int32)
    sums = torch.zeros(rows, device="cuda", dtype=torch.int32)
    for r in range(ROUNDS):
        for s in range(1, SHAPES + 1):
            n = 64 * s * columns
            mix[(triton.cdiv(n, 1024),)](x, n, r + 2, block=1024)
            sum_rows[(64 * s,)](x, sums, columns, block=1024)
    print("triton", int(x.long().sum()), int(sums.long().sum()))


main()
