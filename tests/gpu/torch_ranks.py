"""One rank of a small data-parallel training, made by torchrun; prints the loss and a checksum of the weights (rank 0).
Environment: STEPS, of the training (2)."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for step in range(int(os.environ.get("STEPS", 2))):
    torch.cuda.nvtx.range_push("step %d" % step)
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
total = sum(p.detach().double().sum().item() for p in model.parameters())
if rank == 0:
    print("loss %.9f weights %.9f" % (loss.item(), total))
dist.destroy_process_group()
