# SPDX-License-Identifier: Apache-2.0
"""Parts of random steps in JAX, for the tests of neap.jax. A part changes the state ``s``, a dict with "h" [B, N],
given params, input and its number; ``extra`` returns what else a state needs for some parts."""
import jax
import jax.numpy as jnp

PARTS = {}


def part(function):
    """Registers a part."""
    PARTS[function.__name__] = function
    return function


@part
def dense(p, s, x, k):
    s["h"] = jnp.tanh(s["h"] @ p[f"w{k}"] + x @ p["v"])


@part
def tied(p, s, x, k):
    s["h"] = s["h"] + jnp.tanh(s["h"] @ p["w0"]) @ p["w0"].T * 0.1


@part
def gated(p, s, x, k):
    z = jax.nn.sigmoid(s["h"] @ p[f"w{k}"])
    s["h"] = z * s["h"] + (1 - z) * jnp.tanh(x @ p["v"])


@part
def count(p, s, x, k):
    s["n"] = s["n"] + 1
    s["h"] = s["h"] * jnp.where(s["n"] % 3 == 0, 0.5, 1.0)


@part
def mask(p, s, x, k):
    s["mask"] = s["mask"] ^ (s["h"] > 0)
    s["h"] = jnp.where(s["mask"], s["h"], s["h"] * p[f"w{k}"][0])


@part
def noise(p, s, x, k):
    s["key"], one = jax.random.split(s["key"])
    s["h"] = s["h"] * jax.random.bernoulli(one, 0.8, s["h"].shape)


@part
def branch(p, s, x, k):
    s["h"] = jax.lax.cond(s["h"].mean() > 0, lambda h: jnp.sin(h @ p[f"w{k}"]), lambda h: h * 0.9, s["h"])


@part
def window(p, s, x, k):
    w = jnp.concatenate([s["window"][1:], s["h"][None]])
    s["window"], s["h"] = w, jnp.tanh(jnp.einsum("kbn,nm->bm", w, p[f"w{k}"]))


@part
def inner(p, s, x, k):
    s["h"], _ = jax.lax.scan(lambda h, _: (jnp.tanh(h @ p[f"w{k}"]), None), s["h"], None, length=3)


@part
def own(p, s, x, k):
    s["h"] = surrogate(s["h"]) * 0.5 + s["h"] @ p[f"w{k}"]


@part
def stopped(p, s, x, k):
    s["h"] = s["h"] - jax.lax.stop_gradient(s["h"]).mean() + 0.1 * jax.checkpoint(jnp.sin)(s["h"] @ p[f"w{k}"])


@part
def slope(p, s, x, k):
    s["h"] = s["h"] + 0.1 * jax.grad(lambda h: jnp.sin(h @ p[f"w{k}"]).sum())(s["h"])


@part
def complexes(p, s, x, k):
    s["z"] = jnp.tanh(s["z"] * (0.5 + 0.2j) + s["h"] * p[f"w{k}"][0]).conj()
    s["h"] = s["h"] + 0.1 * s["z"].real


@jax.custom_vjp
def surrogate(h):
    return (h > 0).astype(h.dtype)


surrogate.defvjp(lambda h: (surrogate(h), h), lambda h, g: (g / (1 + jnp.abs(h)) ** 2,))


def extra(names, key, shape, dtype):
    """The entries of a state, in addition to "h", that these parts use."""
    pair = jnp.result_type(dtype, jnp.complex64)
    slots = {"count": ("n", jnp.zeros((), int)), "mask": ("mask", jnp.ones(shape, bool)), "noise": ("key", key),
             "window": ("window", jnp.zeros((2, *shape), dtype)), "complexes": ("z", jnp.ones(shape, pair))}
    return dict(slots[name] for name in names if name in slots)
