#!/usr/bin/env python3
"""Training steps beside much memory: most of the device is owned, some of it is written each step, and one value is read.

usage: torch_big.py OWNED WRITTEN STEPS    GiB of random numbers, GiB of them that each step changes, steps
Prints the value of each step and a sum over all memory, which are the same in every run; times on stderr.
"""
import sys
import time

import torch

owned, written, steps = (int(a) for a in sys.argv[1:4])
GIB = 1 << 28  # numbers
torch.manual_seed(0)
big = [torch.empty(GIB, dtype=torch.int32, device="cuda") for _ in range(owned)]
for b in big:
    b.random_()
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
x = torch.randn(64, 1024, device="cuda")
for step in range(steps):
    start = time.time()
    for i in range(written):
        big[(step + i) % owned].mul_(3)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    print(f"step {step}: {loss.item():.9g}", flush=True)
    print(f"step {step} took {time.time() - start:.2f} s", file=sys.stderr, flush=True)
total = 0
for b in big:
    total ^= int(b.sum(dtype=torch.int64).item())
print("sum", total)
