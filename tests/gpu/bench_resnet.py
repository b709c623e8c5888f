#!/usr/bin/env python3
"""A short ResNet-18 training run with deterministic algorithms: prints the loss of each step to the last digit and a digest
of the trained weights; the time of the training loop goes to stderr.

usage: bench_resnet.py [--steps N] [--pinned] [--scaler] [--turns]

--pinned: batches come from two worker processes through PyTorch's pinning thread, and another thread keeps writing pinned
memory and checks what it wrote. The losses are the same as without.
--turns: trains on afterwards, as many steps as each line of stdin says, with one batch; tells their time.
--scaler: fp16 with a gradient scaler, which reads one number of the device in each step, instead of bf16.
"""
import argparse
import hashlib
import os
import sys
import threading
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # what makes cuBLAS deterministic; read when torch loads it

import torch
import torchvision

BATCH, CLASSES = 32, 1000


class Images(torch.utils.data.Dataset):
    """Image i is the same in every process and run."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(3, 224, 224, generator=generator), (i * 37) % CLASSES


class PinnedWriter(threading.Thread):
    """Fills pinned memory with one number after the other, and looks whether the last one is still there."""

    def __init__(self):
        super().__init__(daemon=True)
        self.memory = torch.zeros(1 << 14, dtype=torch.int64).pin_memory()
        self.stop, self.rounds, self.damaged = threading.Event(), 0, 0

    def run(self):
        while not self.stop.is_set():
            self.damaged += int((self.memory != self.rounds).sum())
            self.rounds += 1
            self.memory.fill_(self.rounds)
            time.sleep(0.001)

    def end(self):
        self.stop.set()
        self.join()
        return self.damaged + int((self.memory != self.rounds).sum())


def batches(steps, pinned):
    data = Images(steps * BATCH)
    if pinned:
        return torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=2, pin_memory=True)
    return torch.utils.data.DataLoader(data, batch_size=BATCH)


def train(model, data, pinned, fp16):
    scaler = torch.amp.GradScaler("cuda", enabled=fp16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step, (images, labels) in enumerate(data):
        images = images.to("cuda", non_blocking=pinned)
        labels = labels.to("cuda", non_blocking=pinned)
        with torch.autocast("cuda", dtype=torch.float16 if fp16 else torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print("step %d loss %r" % (step, loss.item()), flush=True)
    torch.cuda.synchronize()


def take_turns(model):
    """Answers each number of steps on stdin with "turn SECONDS" on stderr. Batches come from the device's memory, so that
    a step's time is that of its launches."""
    images, labels = next(iter(batches(1, False)))
    batch = [(images.to("cuda"), labels.to("cuda"))]
    for line in sys.stdin:
        torch.cuda.synchronize()
        start = time.perf_counter()
        train(model, batch * int(line), False, False)
        print("turn %.6f" % (time.perf_counter() - start), file=sys.stderr, flush=True)


def digest(model):
    state = hashlib.sha256()
    for tensor in model.state_dict().values():
        state.update(tensor.cpu().numpy().tobytes())
    return state.hexdigest()[:32]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--pinned", action="store_true")
    parser.add_argument("--scaler", action="store_true")
    parser.add_argument("--turns", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = torchvision.models.resnet18(num_classes=CLASSES).cuda()
    data = batches(options.steps, options.pinned)
    torch.cuda.synchronize()
    writer = PinnedWriter() if options.pinned else None
    if writer:
        writer.start()
    start = time.perf_counter()
    train(model, data, options.pinned, options.scaler)
    print("bench: with results %.6f s" % (time.perf_counter() - start), file=sys.stderr, flush=True)
    print("weights %s" % digest(model))
    if options.turns:
        take_turns(model)
    if writer:
        print("pinned memory: %d numbers damaged" % writer.end())


if __name__ == "__main__":
    main()
