#!/usr/bin/env python3
"""Three jitted training steps with JAX's default settings: it owns three quarters of the device from its start. Prints
each loss and a sum of the weights; the time until the first result on stderr. The compiler's choice by timing is off, so
that every run computes the same."""
import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
start = time.time()
import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
weights = [jax.random.normal(jax.random.fold_in(key, i), (512, 512)) * 0.04 for i in range(6)]
x = jax.random.normal(key, (64, 512))
x.block_until_ready()
print(f"first result after {time.time() - start:.2f} s", file=sys.stderr, flush=True)


def loss_of(ws):
    h = x
    for w in ws:
        h = jnp.tanh(h @ w)
    return jnp.mean(h * h)


@jax.jit
def train(ws):
    loss, gradients = jax.value_and_grad(loss_of)(ws)
    return [w - 0.1 * g for w, g in zip(ws, gradients)], loss


for _ in range(3):
    weights, loss = train(weights)
    print(f"loss {float(loss):.9g}", flush=True)
print(f"sum {float(sum(jnp.sum(w) for w in weights)):.9g}")
