#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of a step of torch.nn.LSTM in float32 without TF32, or in bfloat16, forward and backward, compared with that of neap on the
same GPU.
    lstm.py COMPARE.json [--units 512] [--batch 32] [--steps 1000] [--inputs 700] [--dtype float32] [--device cuda]
COMPARE.json is what `neap compare --json --strategy bptt --device cuda` printed for lstm:512,li and the same sizes. A step of neap
includes the readout and the gradients of all weights. The last row is PASS if neap takes at most 1.5 times as long.
"""
import argparse
import json
import statistics
import time

import torch


def seconds(lstm, x, backward):
    """Median of 5 passes after 2."""
    found = []
    for _ in range(7):
        if x.is_cuda:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.set_grad_enabled(backward):
            y = lstm(x)[0]
        if backward:
            lstm.zero_grad(set_to_none=True)
            y.sum().backward()
        if x.is_cuda:
            torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return statistics.median(found[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("compare")
    for name, value in ("units", 512), ("batch", 32), ("steps", 1000), ("inputs", 700):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with open(asked.compare, encoding="utf-8") as file:
        found = json.load(file)
    run = next(run for run in found["runs"] if run["strategy"] == "bptt" and run["feasible"])
    own, chain = run["seconds_per_step"], found["chain"]
    dtype = getattr(torch, asked.dtype)
    x = torch.randn(asked.steps, asked.batch, asked.inputs, device=asked.device, dtype=dtype)
    lstm = torch.nn.LSTM(asked.inputs, asked.units).to(asked.device, dtype)
    forward, both = (seconds(lstm, x, backward) / asked.steps for backward in (False, True))
    print(f"nn.LSTM, {asked.dtype}, TF32 off: {1e6 * forward:.2f} us per step forward, {1e6 * both:.2f} with backward (torch {torch.__version__})")
    print(f"neap: {1e6 * chain['advance']:.2f} us forward, {1e6 * chain['record']:.2f} with tapes, {1e6 * chain['backward']:.2f} backward, "
          f"{1e6 * own:.2f} in all")
    print(f"{'PASS' if own <= 1.5 * both else 'FAIL'}: neap takes {own / both:.2f} times as long (1.5 or less is right)")


if __name__ == "__main__":
    main()
