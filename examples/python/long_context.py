#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Exact gradients of a language model over a long context, with a memory budget. The tokens are divided into chunks, and
one chunk is one step of nt.scan: it computes its tokens in parallel, and passes the recurrent state of every layer to
the next chunk. Layers: gated linear attention (gla), Mamba-2 (mamba2), RWKV-7 (rwkv7), or gla with one layer of
attention, whose cache of keys and values grows with the context (hybrid). --truncate compares the gradient with
truncated gradients, --plain with plain autograd. Tokens are random; their frequencies differ between sequences, so a
model that counts the tokens of a long context predicts the next token better.
"""
import argparse
import resource
import sys
import time

import torch
from torch.nn import functional

import neap
import neap.torch as nt

BLOCK = 64  # tokens that a recurrence computes in parallel; at most 128, so that `factors` fit single precision
SPREAD = 2  # standard deviation of the logarithms of frequencies of tokens


# Recurrences. Tensors are (batch, heads, tokens, features); S is the state before the block; each function returns the
# outputs o of the block and the state after it. L is the logarithm of the product of decays up to a token, inclusive.

def gated_linear_attention(S, q, k, v, log_a):
    """S_t = diag(a_t) S_{t-1} + k_t v_t^T,  o_t = S_t^T q_t  (Yang and others 2024, arXiv 2312.06635).

    In a block: o_i = S^T (q_i P_i) + sum over j <= i of v_j (q_i P_i) . (k_j / P_j), with P_i = exp(L_i)."""
    L = log_a.cumsum(2)
    up, down = factors(L)
    scores = ((q * up) @ (k * down).transpose(2, 3)).tril()
    return scores @ v + (q * L.exp()) @ S, decayed(S, L) + (k * to_end(L)).transpose(2, 3) @ v


def state_space_duality(S, c, b, x, log_a):
    """S_t = a_t S_{t-1} + b_t x_t^T,  o_t = S_t^T c_t, with one decay a_t per head (Mamba-2: Dao and Gu 2024,
    arXiv 2405.21060). In a block: o_i = S^T c_i P_i + sum over j <= i of x_j (c_i . b_j) exp(L_i - L_j)."""
    L = log_a.cumsum(2)  # (batch, heads, tokens, 1)
    later = torch.ones(L.shape[2], L.shape[2], dtype=torch.bool, device=L.device).triu(1)
    decay = (L - L.transpose(2, 3)).masked_fill(later, float("-inf")).exp()
    o = ((c @ b.transpose(2, 3)) * decay) @ x + (c * L.exp()) @ S
    return o, decayed(S, L) + (b * to_end(L)).transpose(2, 3) @ x


def delta_rule(S, r, k, v, log_w, x, b):
    """S_t = diag(w_t) S_{t-1} - b_t (S_{t-1}^T x_t)^T + k_t v_t^T,  o_t = S_t^T r_t  (RWKV-7: Peng and others 2025,
    arXiv 2503.14456): the value at the key x_t is removed with the weights b_t before v_t is stored at the key k_t.

    With u_t = -S_{t-1}^T x_t, S_t is the sum over j <= t of diag(P_t / P_j) (b_j u_j^T + k_j v_j^T), plus diag(P_t) S.
    This makes u_t a triangular system in the u_j of earlier tokens j < t."""
    L = log_w.cumsum(2)
    before = L - log_w
    up, down = factors(L)
    writes, count = torch.cat([b * down, k * down], 2).transpose(2, 3), b.shape[2]
    removed, stored = ((x * up * (-log_w).exp()) @ writes).split(count, 3)
    u = torch.linalg.solve_triangular(removed.tril(-1), -((x * before.exp()) @ S + stored.tril(-1) @ v),
                                      upper=False, unitriangular=True)
    removed, stored = ((r * up) @ writes).split(count, 3)
    o = removed.tril() @ u + stored.tril() @ v + (r * L.exp()) @ S
    end = to_end(L)
    return o, decayed(S, L) + (b * end).transpose(2, 3) @ u + (k * end).transpose(2, 3) @ v


def factors(L):
    """P_i / P_m and P_m / P_j, whose products are the decays from j to i; the token m in the middle bounds both."""
    middle = L[:, :, L.shape[2] // 2, None].detach()  # products do not depend on it
    return (L - middle).exp(), (middle - L).exp()


def to_end(L):
    """The decay from each token to the end of the block."""
    return (L[:, :, -1:] - L).exp()


def decayed(S, L):
    """The state after the decays of the whole block."""
    return L[:, :, -1, :, None].exp() * S


def in_blocks(recurrence, S, *rows):
    """Applies a recurrence to blocks of BLOCK tokens, in the precision of the state."""
    out = []
    with torch.autocast(S.device.type, enabled=False):
        for block in zip(*[row.to(S.dtype).split(BLOCK, 2) for row in rows]):
            o, S = recurrence(S, *block)
            out.append(o)
    return (out[0] if len(out) == 1 else torch.cat(out, 2)), S


# Layers: (x, state) -> (y, state), where x and y are (batch, tokens, width)

def heads_of(x, heads):
    """(batch, tokens, heads * features) -> (batch, heads, tokens, features)"""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def joined(o):
    """(batch, heads, tokens, features) -> (batch, tokens, heads * features), each head normalized."""
    return (o * (o.square().mean(3, keepdim=True) + 1e-5).rsqrt()).transpose(1, 2).flatten(2)


class Linear(torch.nn.Linear):
    """A linear layer without bias."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)


class GatedLinearAttention(torch.nn.Module):
    """Decays a = sigmoid(W x)^(1/16), bounded below by exp(-1) for the sake of `factors`."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.sizes = heads, (width // 2, width // 2, width, width)
        self.all = Linear(width, sum(self.sizes))
        self.decay = torch.nn.Sequential(Linear(width, 16), torch.nn.Linear(16, width // 2))
        self.out = Linear(width, width)

    def start(self, batch):
        """The state before the first token."""
        return torch.zeros(batch, self.heads, self.sizes[0] // self.heads, self.sizes[2] // self.heads),

    def forward(self, x, state):
        q, k, v, gate = self.all(x).split(self.sizes, 2)
        log_a = (functional.logsigmoid(self.decay(x).float()) / 16).clamp(min=-1)
        q = q * (self.heads / self.sizes[0]) ** 0.5
        o, S = in_blocks(gated_linear_attention, *state, *[heads_of(row, self.heads) for row in (q, k, v, log_a)])
        return self.out(joined(o) * functional.silu(gate)), (S,)


class Mamba2(torch.nn.Module):
    """A short convolution over x, b and c, time steps softplus(dt) and decays exp(-softplus(dt) A); the state also has
    the last three inputs of the convolution."""

    features, taps = 16, 4  # of b and c, of the convolution

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.inner = heads, 2 * width
        self.mixed = self.inner + 2 * self.features
        self.all = Linear(width, self.inner + self.mixed + heads)
        self.convolution = torch.nn.Conv1d(self.mixed, self.mixed, self.taps, groups=self.mixed)
        steps = 10 ** (torch.rand(heads) * 2 - 3)  # 0.001 to 0.1
        self.bias = torch.nn.Parameter(steps.expm1().log())
        self.log_A = torch.nn.Parameter((1 + 15 * torch.rand(heads)).log())
        self.skip = torch.nn.Parameter(torch.ones(heads, 1, 1))
        self.out = Linear(self.inner, width)

    def start(self, batch):
        """The state before the first token."""
        return (torch.zeros(batch, self.heads, self.features, self.inner // self.heads),
                torch.zeros(batch, self.mixed, self.taps - 1))

    def forward(self, x, state):
        S, last = state
        gate, row, dt = self.all(x).split([self.inner, self.mixed, self.heads], 2)
        row = torch.cat([last, row.transpose(1, 2).to(last.dtype)], 2)
        mixed = functional.silu(self.convolution(row)).transpose(1, 2)
        x, b, c = mixed.split([self.inner, self.features, self.features], 2)
        x, b, c = heads_of(x, self.heads), b[:, None], c[:, None]
        dt = functional.softplus(dt.to(S.dtype) + self.bias).transpose(1, 2)[..., None]
        o, S = in_blocks(state_space_duality, S, c, b, x * dt, -dt * self.log_A.exp()[:, None, None])
        o = (o + self.skip * x).transpose(1, 2).flatten(2) * functional.silu(gate)
        return self.out(joined(o[:, None])), (S, row[:, :, 1 - self.taps:].clone())  # of the whole row without clone


class RWKV7(torch.nn.Module):
    """The time mixing of RWKV-7, without its mixing of values across layers: projections of the token and the token
    before it, which is part of the state; decays w = exp(-exp(-0.5) sigmoid(...)), at least 0.545."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.shift = torch.nn.Parameter(torch.rand(6, width))  # share of the token before it, for r, w, k, v, a, g
        self.rkv = torch.nn.ModuleList([Linear(width, width) for _ in range(3)])
        low = max(16, width // 16)
        self.low = torch.nn.ModuleList([torch.nn.Sequential(Linear(width, low), act, torch.nn.Linear(low, width))
                                        for act in (torch.nn.Tanh(), torch.nn.Identity(), torch.nn.Sigmoid())])
        self.key = torch.nn.Parameter(torch.ones(2, width))  # scales of the removed key, and of `a` in the stored key
        self.bonus = torch.nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.out = Linear(width, width)

    def start(self, batch):
        """The state before the first token."""
        width = self.out.in_features
        return torch.zeros(batch, self.heads, width // self.heads, width // self.heads), torch.zeros(batch, 1, width)

    def forward(self, x, state):
        S, last = state
        before = torch.cat([last.to(x.dtype), x[:, :-1]], 1)
        xr, xw, xk, xv, xa, xg = torch.lerp(x, before, self.shift.to(x.dtype)[:, None, None])
        r, k, v = [layer(row) for layer, row in zip(self.rkv, (xr, xk, xv))]
        w, a, gate = [layer(row) for layer, row in zip(self.low, (xw, xa, xg))]
        log_w, a = -0.606531 * torch.sigmoid(w.float() - 2), torch.sigmoid(a)
        removed = functional.normalize(heads_of(k * self.key[0], self.heads), dim=3)
        k = k * (1 + (a - 1) * self.key[1])
        r, k, v, log_w, a = [heads_of(row, self.heads) for row in (r, k, v, log_w, a)]
        o, S = in_blocks(delta_rule, S, r, k, v, log_w, removed, removed * a)
        bonus = ((r * self.bonus * k).sum(3, keepdim=True) * v).transpose(1, 2).flatten(2)
        return self.out((joined(o) + bonus) * gate), (S, x[:, -1:].to(last.dtype).clone())  # else it keeps all of x


class Attention(torch.nn.Module):
    """Causal softmax attention over all earlier tokens, whose keys and values are the state: it grows by one chunk per
    step."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.all, self.out = heads, Linear(width, 3 * width), Linear(width, width)

    def start(self, batch):
        """Keys and values of no tokens."""
        empty = torch.zeros(batch, self.heads, 0, self.out.in_features // self.heads)
        return empty, empty.clone()

    def forward(self, x, state):
        q, *new = [heads_of(row, self.heads) for row in self.all(x).chunk(3, 2)]
        keys, values = [torch.cat([old, row.to(old.dtype)], 2) for old, row in zip(state, new)]
        later = torch.ones(q.shape[2], keys.shape[2], dtype=torch.bool, device=x.device)
        scores = (q @ keys.to(q.dtype).transpose(2, 3) * q.shape[3] ** -0.5).masked_fill(
            later.triu(1 + keys.shape[2] - q.shape[2]), float("-inf"))
        o = scores.softmax(3).to(values.dtype) @ values
        return self.out(o.transpose(1, 2).flatten(2)), (keys, values)


LAYERS = {"gla": [GatedLinearAttention], "mamba2": [Mamba2], "rwkv7": [RWKV7],
          "hybrid": [GatedLinearAttention, Attention]}


class Block(torch.nn.Module):
    """A recurrent layer and a gated feed-forward layer, each added to its input."""

    def __init__(self, kind, width, heads):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.mixer, hidden = kind(width, heads), 8 * width // 3
        self.up, self.down = Linear(width, 2 * hidden), Linear(hidden, width)

    def forward(self, x, state):
        y, state = self.mixer(self.norms[0](x), state)
        x = x + y
        gate, y = self.up(self.norms[1](x)).chunk(2, 2)
        return x + self.down(functional.silu(gate) * y), state


class Model(torch.nn.Module):
    """A step of nt.scan: (states, (tokens, next tokens), t) -> (states, sum of the losses of the chunk)"""

    def __init__(self, layer, layers, width, heads, vocabulary, progress=None):
        super().__init__()
        kinds = [LAYERS[layer][i == layers // 2] if layer == "hybrid" else LAYERS[layer][0] for i in range(layers)]
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList([Block(kind, width, heads) for kind in kinds])
        self.norm, self.head = torch.nn.LayerNorm(width), Linear(width, vocabulary)
        self.progress = progress

    def start(self, batch):
        """The states before the first token."""
        like = self.head.weight
        return tuple(tuple(row.to(like) for row in block.mixer.start(batch)) for block in self.blocks)

    def forward(self, states, inputs, t):
        if self.progress is not None:
            self.progress(t)
        tokens, following = inputs
        x, after = self.embedding(tokens), []
        for block, state in zip(self.blocks, states):
            x, state = block(x, state)
            after.append(state)
        logits = self.head(self.norm(x)).flatten(0, 1).to(self.norm.weight.dtype)
        return tuple(after), functional.cross_entropy(logits, following.flatten(), reduction="sum")


# Gradients

def exact(scan, model, inputs):
    """The sum of all losses; its gradient is exact."""
    _, loss = scan(model.start(inputs[0].shape[1]), inputs)
    loss.backward()
    return loss.item()


def plain(model, inputs):
    """The same with plain autograd, which stores the saved tensors of all chunks."""
    states, loss = model.start(inputs[0].shape[1]), 0
    for t, row in enumerate(zip(*inputs)):
        states, more = model(states, row, t)
        loss = loss + more
    loss.backward()
    return loss.item()


def truncated(model, inputs, window):
    """The same without the gradients that cross a boundary between windows of `window` chunks."""
    states, loss, total = model.start(inputs[0].shape[1]), 0, 0.0
    for t, row in enumerate(zip(*inputs)):
        states, more = model(states, row, t)
        loss = loss + more
        if (t + 1) % window == 0 or t + 1 == len(inputs[0]):
            loss.backward()
            total, loss = total + loss.item(), 0
            states = tuple(tuple(row.detach() for row in state) for state in states)
    return total


def sequences(tokens, batch, vocabulary, seed):
    """Random tokens [batch, tokens + 1], with frequencies that differ between sequences."""
    generator = torch.Generator().manual_seed(seed)
    frequencies = torch.randn(batch, vocabulary, generator=generator).mul(SPREAD).softmax(1)
    return torch.multinomial(frequencies, tokens + 1, True, generator=generator)


def chunks(x, size):
    """[batch, tokens] -> [chunks, batch, size]"""
    return x.unflatten(1, (-1, size)).transpose(0, 1)


def compare(model, wanted, part=""):
    """Cosine, relative error and relative norm of the gradients of a model, compared with the wanted ones; only of the
    parameters whose names contain `part`."""
    dot = square = norm = error = 0.0
    for (name, param), exact_one in zip(model.named_parameters(), wanted):
        if part in name:
            given = torch.zeros_like(param) if param.grad is None else param.grad
            dot, square = dot + float((given * exact_one).sum()), square + float(given.square().sum())
            norm, error = norm + float(exact_one.square().sum()), error + float((given - exact_one).square().sum())
    return dot / (square * norm) ** 0.5, (error / norm) ** 0.5, (square / norm) ** 0.5


# The program

class Progress:
    """Prints the current chunk to standard error every `every` seconds."""

    def __init__(self, every, count):
        self._every, self._count, self._begin, self._next = every, count, time.monotonic(), time.monotonic() + every

    def __call__(self, t):
        now = time.monotonic()
        if now > self._next:
            self._next = now + self._every
            print(f"chunk {t} of {self._count}, {now - self._begin:.0f} s", file=sys.stderr)


class Clock:
    """Runs one forward and backward pass; prints its name, loss, time and CPU time, and the growth of memory."""

    def __init__(self, device, tokens, passes):
        self.device, self.tokens, self.passes = device, tokens, passes

    def _peak(self, reset=False):
        """The largest number of bytes in use: of the process, or of a CUDA device since the last reset."""
        if self.device.type != "cuda":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        torch.cuda.synchronize(self.device)
        if reset:
            torch.cuda.reset_peak_memory_stats(self.device)
        return torch.cuda.max_memory_allocated(self.device)

    def __call__(self, name, model, run, *arguments):
        """The gradients are in the parameters afterwards."""
        rows, before = [], self._peak(True)
        for _ in range(self.passes):
            model.zero_grad(set_to_none=True)
            begin = time.perf_counter(), time.process_time()
            loss = run(*arguments)
            peak = self._peak()
            rows.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        elapsed, processor = map(min, zip(*rows))
        print(f"{name}: loss {loss / self.tokens:.4f} per token, {elapsed:.1f} s, {self.tokens / elapsed:.0f} "
              f"tokens/s, {processor:.1f} s of CPU time, memory grew by {(peak - before) / 1e6:.0f} MB", flush=True)


def options():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layer", choices=LAYERS, default="gla", help="kind of the layers (default gla)")
    parser.add_argument("--tokens", type=int, default=16384,
                        help="tokens per sequence, a multiple of CHUNK (default 16384)")
    parser.add_argument("--chunk", type=int, default=64, help="tokens per step of the scan (default 64)")
    parser.add_argument("--memory", default="16M", help="memory budget in bytes, such as 64M (default 16M)")
    parser.add_argument("--host", help="pinned host memory to which states of a CUDA device are offloaded, such as 32G")
    parser.add_argument("--slow", metavar="FOLDER", help="folder to which states and tapes of a CPU are offloaded")
    parser.add_argument("--layers", type=int, default=4, help="number of layers (default 4)")
    parser.add_argument("--width", type=int, default=64, help="features per token, a multiple of 2 HEADS (default 64)")
    parser.add_argument("--heads", type=int, default=2, help="heads per layer (default 2)")
    parser.add_argument("--vocabulary", type=int, default=256, help="number of different tokens (default 256)")
    parser.add_argument("--batch", type=int, default=1, help="number of sequences (default 1)")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float64"), default="float32",
                        help="bfloat16: autocast; states and parameters are float32 (default float32)")
    parser.add_argument("--device", default="cpu", help="device such as cuda (default cpu)")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch on a CPU (default 1)")
    parser.add_argument("--updates", type=int, default=0,
                        help="weight updates with exact gradients before the comparison (default 0)")
    parser.add_argument("--plain", action="store_true", help="compare with the bits of plain autograd")
    parser.add_argument("--truncate", type=int, nargs="+", default=[], metavar="WINDOW",
                        help="compare with gradients truncated to windows of this number of chunks")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of weights and tokens (default 0)")
    parser.add_argument("--passes", type=int, default=1,
                        help="passes of each method, of which the fastest counts (default 1)")
    parser.add_argument("--progress", type=float, metavar="SECONDS", default=5 if sys.stderr.isatty() else 0,
                        help="interval of progress messages; 0: none (default: 5 on a terminal)")
    given = parser.parse_args()
    if given.chunk < 1 or given.tokens < 1 or given.tokens % given.chunk:
        parser.error(f"--tokens {given.tokens} is not a multiple of --chunk {given.chunk}; pass a multiple")
    if given.width % (2 * given.heads):
        parser.error(f"--width {given.width} is not a multiple of 2 * --heads {given.heads}; pass a multiple")
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {given.device}: this PyTorch finds no CUDA device; pass --device cpu")
    return given


def run(given, seed):
    """Computes and compares the gradients for one seed; returns False if bits differ."""
    torch.manual_seed(seed)
    device, count = torch.device(given.device), given.tokens // given.chunk
    progress = Progress(given.progress, count) if given.progress else None
    model = Model(given.layer, given.layers, given.width, given.heads, given.vocabulary, progress)
    model = model.to(device, torch.float64 if given.dtype == "float64" else torch.float32)
    scan = nt.Scan(model, memory=given.memory, host=given.host, slow=given.slow, reduce=lambda loss, t: loss)
    clock = Clock(device, given.tokens * given.batch, given.passes)
    print(f"{given.layer}: {sum(p.numel() for p in model.parameters())} parameters, {count} chunks of {given.chunk} "
          f"tokens, batch {given.batch}, {given.dtype} on {given.device}, seed {seed}")

    def inputs(number):
        x = sequences(given.tokens, given.batch, given.vocabulary, number).to(device)
        return chunks(x[:, :-1], given.chunk), chunks(x[:, 1:], given.chunk)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for update in range(given.updates):
        clock(f"update {update + 1}", model, exact, scan, model, inputs(1000 * seed + update + 1))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
    rows = inputs(1000 * seed)
    clock(f"exact, memory={given.memory}", model, exact, scan, model, rows)
    print(scan.report())
    wanted, same = [param.grad.clone() for param in model.parameters()], True
    if given.plain:
        clock("plain autograd", model, plain, model, rows)
        same = all(torch.equal(param.grad, one) for param, one in zip(model.parameters(), wanted))
        print(f"gradients of plain autograd: {'bit-identical' if same else 'DIFFERENT'}")
    for window in given.truncate:
        clock(f"truncated to {window} chunks", model, truncated, model, rows, window)
        for what, part in ("all parameters", ""), ("recurrent layers", ".mixer."):
            print("  {}, compared with the exact gradient: cosine {:.4f}, relative error {:.4f}, norm {:.4f}".format(
                what, *compare(model, wanted, part)))
    return same


def main():
    """Runs all seeds."""
    given = options()
    torch.set_num_threads(given.threads)
    # Without the cache of casts, in which a plain loop would sum the gradients of weights over all chunks in bfloat16.
    with torch.autocast(torch.device(given.device).type, torch.bfloat16, enabled=given.dtype == "bfloat16",
                        cache_enabled=False):
        try:
            return 0 if all([run(given, seed) for seed in given.seeds]) else 1
        except neap.Error as error:
            print(f"long_context.py: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
