#!/usr/bin/env python3
"""20 jitted training steps with JAX's default settings: its compiler times candidates of kernels first, and chooses.

usage: jax_train.py {mlp|conv|rnn}

Prints the loss of some steps. Another choice of kernels rounds otherwise, so lines that begin with "about" have numbers that
may differ by a hundredth.
"""
import sys

import jax
import jax.numpy as jnp

STEPS = 20


def draw(i, *shape):
    return jax.random.normal(jax.random.fold_in(jax.random.PRNGKey(0), i), shape)


def mlp():
    x, y = draw(90, 256, 784), draw(91, 256, 10)

    def loss_of(ws):
        h = x
        for w in ws[:-1]:
            h = jax.nn.relu(h @ w)
        return jnp.mean((h @ ws[-1] - y) ** 2)

    sizes = [784, 1024, 1024, 512, 512, 10]
    return loss_of, [draw(i, a, b) * (2 / a) ** 0.5 for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]


def conv():
    images, labels = draw(90, 32, 32, 32, 3), jnp.arange(32) % 10

    def loss_of(ws):
        h = images
        for i, w in enumerate(ws[:-1]):
            h = jax.lax.conv_general_dilated(
                h, w, (1 + i % 2, 1 + i % 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            h = jax.nn.relu(h - h.mean((1, 2), keepdims=True))
        scores = jax.nn.log_softmax(h.mean((1, 2)) @ ws[-1])
        return -jnp.mean(scores[jnp.arange(32), labels])

    channels = [3, 32, 64, 64, 128]
    ws = [draw(i, 3, 3, a, b) * (2 / (9 * a)) ** 0.5 for i, (a, b) in enumerate(zip(channels, channels[1:]))]
    return loss_of, ws + [draw(80, channels[-1], 10) * 0.1]


def rnn():
    length, batch, width = 32, 64, 256
    xs, y = draw(90, length, batch, width), draw(91, batch, width)

    def loss_of(ws):
        inwards, across, out = ws

        def cell(h, x):
            h = jnp.tanh(x @ inwards + h @ across)
            return h, None

        h, _ = jax.lax.scan(cell, jnp.zeros((batch, width)), xs)
        return jnp.mean((h @ out - y) ** 2)

    return loss_of, [draw(i, width, width) * 0.5 / width**0.5 for i in range(3)]


def main():
    loss_of, weights = {"mlp": mlp, "conv": conv, "rnn": rnn}[sys.argv[1]]()

    @jax.jit
    def train(ws):
        loss, gradients = jax.value_and_grad(loss_of)(ws)
        return [w - 0.01 * g for w, g in zip(ws, gradients)], loss

    for step in range(STEPS):
        weights, loss = train(weights)
        if step % 5 == 4:
            print(f"about {float(loss):.4g} after step {step}", flush=True)
    print(f"about {float(sum(jnp.sum(jnp.abs(w)) for w in weights)):.5g}: the weights", flush=True)


main()
