#!/usr/bin/env python3
"""Hold attention against PyTorch's scaled_dot_product_attention on cuDNN, same card, same run.

usage: compare_attn.py path/to/trireme_bench_cuda_attn

Needs PyTorch with CUDA. Shape by shape PyTorch and Trireme take turns, twice; the better of each
counts. PyTorch has no bottom-right causal mask on cuDNN, so the chunk of queries against a longer
range of keys is held against PyTorch's time without a mask, by rate (FLOP of visible pairs a
second).
"""
import re
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

HEADS, KV_HEADS, HEAD_SIZE = 32, 8, 128
SHAPES = [  # ours, queries, keys, PyTorch's is_causal
    ("causal", 8192, 8192, True),
    ("causal", 32768, 32768, True),
    ("causal", 131072, 131072, True),
    ("full", 65536, 262144, False),
    ("causal", 65536, 262144, False),
]


def timed(run, calls):
    run()
    times = []
    for _ in range(calls):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def pytorch(queries, keys, causal):
    """TFLOP/s forward and backward. Heads last in memory, as a projection leaves them."""
    def tensor(tokens, heads):
        x = torch.randn(1, tokens, heads, HEAD_SIZE, device="cuda", dtype=torch.bfloat16)
        return x.transpose(1, 2).requires_grad_()
    q, k, v = tensor(queries, HEADS), tensor(keys, KV_HEADS), tensor(keys, KV_HEADS)
    pairs = queries * (queries + 1) / 2 if causal else queries * keys
    flop = 4.0 * pairs * HEAD_SIZE * HEADS
    calls = 3 if pairs > 2e9 else 16
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        def forward():
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        forward_ms = timed(forward, calls)
        o = forward()
        grad = torch.randn_like(o)
        backward_ms = timed(
            lambda: torch.autograd.grad(o, (q, k, v), grad, retain_graph=True), calls)
    del q, k, v, o, grad
    torch.cuda.empty_cache()
    return flop / forward_ms * 1e-9, 2.5 * flop / backward_ms * 1e-9


def ours(program, mask, queries, keys):
    out = subprocess.run([program, mask, str(queries), str(keys)], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    rates = re.findall(r"([0-9.]+) ms", out)
    forward_ms, backward_ms = float(rates[0]), float(rates[1])
    pairs = queries * keys if mask == "full" else queries * (keys - queries + (queries + 1) / 2)
    flop = 4.0 * pairs * HEAD_SIZE * HEADS
    print("   ", out.strip(), file=sys.stderr)
    return flop / forward_ms * 1e-9, 2.5 * flop / backward_ms * 1e-9


def main():
    program = sys.argv[1]
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "its cuDNN",
          torch.backends.cudnn.version())
    print(f"{'mask':8} {'queries':>8} {'keys':>8} | forward TFLOP/s: PyTorch, Trireme, ratio "
          f"| backward: PyTorch, Trireme, ratio")
    for mask, queries, keys, causal in SHAPES:
        best = [[0.0, 0.0], [0.0, 0.0]]
        for _ in range(2):
            for i, rates in enumerate((pytorch(queries, keys, causal),
                                       ours(program, mask, queries, keys))):
                best[i] = [max(a, b) for a, b in zip(best[i], rates)]
        theirs, mine = best
        print(f"{mask:8} {queries:8} {keys:8} | {theirs[0]:6.0f} {mine[0]:6.0f} "
              f"{mine[0] / theirs[0]:6.3f} | {theirs[1]:6.0f} {mine[1]:6.0f} "
              f"{mine[1] / theirs[1]:6.3f}", flush=True)


if __name__ == "__main__":
    main()
