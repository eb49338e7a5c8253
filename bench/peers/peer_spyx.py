# SPDX-License-Identifier: Apache-2.0
"""Spyx (JAX): RLIF in a scan, compiled as a whole.

The spikes of a step are computed from the membrane potential of the step before, so the scan runs one step longer and its
first spikes, which are zero, are dropped.
"""
import os

import jax
import jax.numpy as jnp
from importlib.metadata import version


def limit(count):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


class Net:
    VERSION = "Spyx " + version("spyx") + ", JAX " + jax.__version__
    WAYS = ["compiled"]

    def __init__(self, problem, precision):
        if precision == "double":
            jax.config.update("jax_enable_x64", True)
        from flax import nnx
        from spyx import axn, nn

        kind = jnp.float32 if precision == "float" else jnp.float64
        self.names = [n for n in ("layer0.weight", "layer0.recurrent", "layer0.bias",
                                  "readout.weight", "readout.bias")]
        self.weights = [jnp.asarray(problem.weight(n), kind) for n in self.names]
        self.x = jnp.asarray(problem.dense("float32" if precision == "float" else "float64"))
        labels, kappa, hidden = jnp.asarray(problem.labels), problem.decay, problem.hidden
        cell = nn.RLIF((hidden,), beta=problem.decay, activation=axn.triangular(1 / problem.width),
                       rngs=nnx.Rngs(0))
        graph, rest = nnx.split(cell)
        beta = rest["beta"].replace(jnp.asarray(problem.decay, kind))

        def loss(weights, x):
            w, v, b, w_out, b_out = weights
            state = nnx.merge(graph, nnx.State({"beta": beta, "recurrent_w": rest["recurrent_w"].replace(v)}))
            current = jnp.concatenate([x @ w + b, jnp.zeros((1, x.shape[1], hidden), kind)])
            _, spikes = jax.lax.scan(lambda u, now: state(now, u)[::-1],
                                     jnp.zeros((x.shape[1], hidden), kind), current)

            def leak(out, now):
                out = kappa * out + (1 - kappa) * now
                return out, out

            into = spikes[1:] @ w_out + b_out
            _, outs = jax.lax.scan(leak, jnp.zeros_like(into[0]), into)
            chance = jax.nn.log_softmax(outs.mean(0))
            return -jnp.take_along_axis(chance, labels[:, None], 1).mean()

        self.run = None
        self.make = jax.jit(jax.value_and_grad(loss))

    def threads(self, count):
        limit(count)

    def warm(self, way):
        self.run = self.make.lower(self.weights, self.x).compile()

    def step(self, way):
        if self.run is None:
            self.warm(way)
        loss, self.grads = self.run(self.weights, self.x)
        jax.block_until_ready(self.grads)
        return float(loss)

    def gradients(self):
        import numpy
        return {n: numpy.asarray(g) for n, g in zip(self.names, self.grads)}
