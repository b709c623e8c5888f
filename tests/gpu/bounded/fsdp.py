#!/usr/bin/env python3
"""Fully sharded data-parallel training on two GPUs, with a ring of sends between steps. Rank 0 prints each loss."""
import os
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.distributed.fsdp import fully_shard

RANKS, BATCH, WIDTH, LAYERS, STEPS = 2, 64, 512, 6, 20


def layer():
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def pass_on(x, rank):
    """Sends `x` to the next rank, and returns what the rank before sends."""
    got, to, of = torch.empty_like(x), (rank + 1) % RANKS, (rank - 1) % RANKS
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, to), dist.P2POp(dist.irecv, got, of)]):
        work.wait()
    return got


def train(rank):
    torch.cuda.set_device(rank)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[1] if len(sys.argv) > 1 else "29517"}
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(0)
    model = nn.Sequential(*[layer() for _ in range(LAYERS)]).cuda()
    for part in model:
        fully_shard(part)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    x = torch.randn(BATCH, WIDTH, device="cuda")
    for step in range(STEPS):
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        x = pass_on(x, rank)
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"step {step} loss {total.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if torch.cuda.device_count() < RANKS:
        sys.exit("needs two GPUs")
    torch.multiprocessing.spawn(train, nprocs=RANKS)
