#!/usr/bin/env python3
"""Training steps of transformer blocks in eager PyTorch with bf16 autocast and AdamW. Prints each loss."""
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch
from torch import nn

BATCH, LENGTH, WIDTH, HEADS, BLOCKS, STEPS = 8, 128, 512, 8, 2, 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())

    def forward(self, x):
        q, k, v = (t.reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, 2))
        scores = (q @ k.transpose(2, 3)) / (WIDTH // HEADS) ** 0.5
        attention = scores.masked_fill(~self.mask, float("-inf")).softmax(3).to(v.dtype)
        x = x + self.out((attention @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.mlp(self.after(x))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(BATCH, LENGTH, WIDTH).to(device)
    for step in range(STEPS):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = (model(x) - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item()!r}", flush=True)


main()
