#!/usr/bin/env python3
"""Small programs of the Python frameworks, each of which prints a digest of its results; run by real.py.

usage: frameworks.py NAME      gradscaler, pinned, expandable, gpt, decode, captured, compiled, jax, cupy, triton, numba;
                               decode_step, which is for full.sh
       frameworks.py --list    the names, with the environment and options of kprof that each needs
"""
import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def say(name, value):
    print(name, value, flush=True)


def digest(*arrays):
    state = hashlib.sha256()
    for a in arrays:
        state.update(a.tobytes())
    return state.hexdigest()[:24]


def torch_ready():
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # read when torch loads cuBLAS: makes it deterministic
    import torch

    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch


def train(torch, model, batches, loss_of):
    """fp16 autocast and a gradient scaler."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for batch in batches:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of(model, batch)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        say("loss", repr(loss.item()))
    say("scale", scaler.get_scale())
    say("weights", digest(*(t.detach().float().cpu().numpy() for t in model.state_dict().values())))


def resnet(batch, steps):
    torch = torch_ready()
    import torchvision

    model = torchvision.models.resnet18(num_classes=100).cuda()
    images = [(torch.randn(batch, 3, 112, 112), torch.arange(batch) % 100) for _ in range(steps)]
    loss = torch.nn.functional.cross_entropy
    train(torch, model, images, lambda m, b: loss(m(b[0].cuda(non_blocking=True)), b[1].cuda()))


def gradscaler():
    resnet(16, 2)


def pinned():
    sys.exit(subprocess.call([sys.executable, os.path.join(HERE, "bench_resnet.py"), "--steps", "1", "--pinned"]))


def expandable():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    resnet(8, 2)


def captured():
    """A training step of ResNet-18 as one CUDA graph, of 267 kernels and more, replayed five times."""
    torch = torch_ready()
    import torchvision

    model = torchvision.models.resnet18(num_classes=100).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(16, 3, 112, 112, device="cuda"), torch.arange(16, device="cuda") % 100

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    torch.cuda.profiler.start()
    for _ in range(5):
        graph.replay()
    torch.cuda.profiler.stop()
    say("loss", repr(loss.item()))
    say("weights", digest(*(t.detach().float().cpu().numpy() for t in model.state_dict().values())))


def compiled():
    """Five steps of an MLP by torch.compile with CUDA graphs, after those that record them."""
    torch = torch_ready()
    from torch import nn

    model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256)) for _ in range(8))).cuda()
    step = torch.compile(model, mode="reduce-overhead")
    x = torch.randn(64, 256, device="cuda")
    with torch.no_grad():
        for _ in range(8):
            torch.compiler.cudagraph_mark_step_begin()
            y = step(x).clone()
    say("sum", repr(y.sum().item()))
    say("values", digest(y.cpu().numpy()))


def gpt():
    torch = torch_ready()
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, -1))
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.second(x))

    model = nn.Sequential(nn.Embedding(512, 256), *(Block(256, 4) for _ in range(4)), nn.Linear(256, 512)).cuda()
    tokens = torch.randint(0, 512, (2, 8, 129)).cuda()

    def loss_of(m, x):
        return nn.functional.cross_entropy(m(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

    train(torch, model, tokens, loss_of)


def llama(torch):
    """A small model, and a prompt for it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0,
    )
    return LlamaForCausalLM(config).cuda().eval(), torch.arange(1, 17).unsqueeze(0).cuda()


def decode():
    """TOKENS: how many are decoded."""
    torch = torch_ready()
    model, prompt = llama(torch)
    n = int(os.environ.get("TOKENS", "12"))
    with torch.no_grad():
        tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n, do_sample=False)
    say("tokens", tokens.tolist())


def decode_step():
    """One step of decoding between the calls that start and stop profiling, after two that are not profiled."""
    torch = torch_ready()
    model, prompt = llama(torch)
    with torch.no_grad():
        out = model(prompt, use_cache=True)
        for step in range(3):
            if step == 2:
                torch.cuda.profiler.start()
            out = model(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values, use_cache=True)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    say("logits", digest(out.logits.float().cpu().numpy()))


def jax():
    import jax
    import jax.numpy as jnp
    import numpy as np

    def loss_of(weights, x, y):
        for w in weights[:-1]:
            x = jax.nn.relu(x @ w)
        return jnp.mean((x @ weights[-1] - y) ** 2)

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    weights = [jax.random.normal(k, (128, 128)) * 0.1 for k in keys]
    x, y = np.linspace(0, 1, 64 * 128, dtype=np.float32).reshape(64, 128), np.ones((64, 128), np.float32)
    step = jax.jit(jax.value_and_grad(loss_of))
    for _ in range(3):
        loss, gradients = step(weights, x, y)
        weights = [w - 0.1 * g for w, g in zip(weights, gradients)]
        say("loss", repr(float(loss)))
    say("weights", digest(*map(np.asarray, weights)))


def cupy():
    import cupy as cp

    x = cp.arange(1 << 16, dtype=cp.float64).reshape(256, 256) / 65536
    y = cp.fft.fft2(cp.sort(x @ x.T, axis=1)).real
    kernel = cp.ElementwiseKernel("float64 a, float64 b", "float64 c", "c = a * b + 1", "fused")
    z = kernel(y, x).cumsum(axis=0)
    say("sum", repr(float(z.sum())))
    say("values", digest(cp.asnumpy(z)))


def triton():
    sys.exit(subprocess.call([sys.executable, os.path.join(HERE, "triton_add.py")]))


def numba():
    import numpy as np

    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # Numba 0.68 asks for it, NumPy 2.5 has it no more
    from numba import cuda

    @cuda.jit
    def scale(values, factor):
        i = cuda.grid(1)
        if i < values.size:
            values[i] = values[i] * factor + i

    values = cuda.to_device(np.ones(10000))
    for _ in range(5):
        scale[40, 256](values, 1.5)
    say("values", digest(values.copy_to_host()))


# Each program, and what kprof is asked for so that it ends in reasonable time.
PROGRAMS = {
    gradscaler: {}, pinned: {}, expandable: {}, gpt: {}, decode: {}, captured: {}, compiled: {}, jax: {"KPROF_LAUNCH_COUNT": "2"}, cupy: {},
    triton: {}, numba: {},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for program, environment in PROGRAMS.items():
            print(program.__name__, *(f"{k}={v}" for k, v in environment.items()))
    else:
        {p.__name__: p for p in [*PROGRAMS, decode_step]}[sys.argv[1]]()
