#!/usr/bin/env python3
"""Hold a training step (forward, loss, backward) against Transformers, same card, same run.

usage: compare_step.py path/to/trireme_bench_step CONFIG.json TOKENS [TOKENS ...] [--NAME VALUE ...]

Needs PyTorch with CUDA and Transformers. Stock is the model of CONFIG.json in bfloat16 with PyTorch's
scaled_dot_product_attention, gradient checkpointing of every layer and the loss in chunks of 4,096
rows, each computed again in its backward. Options go to Trireme. Stock and Trireme take turns, twice;
the better of each counts. Memory is the peak less weights and gradients (and, of Trireme, the
optimizer's state).
"""
import gc
import re
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
import transformers
from torch.utils.checkpoint import checkpoint

LOSS_ROWS = 4096
CALLS = 3


def chunk_loss(head, hidden, labels):
    return F.cross_entropy(head(hidden).float(), labels, reduction="sum")


def step(model, ids):
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[0, :-1]
    labels = ids[0, 1:]
    loss = hidden.new_zeros((), dtype=torch.float32)
    for begin in range(0, len(labels), LOSS_ROWS):
        part = slice(begin, begin + LOSS_ROWS)
        loss = loss + checkpoint(chunk_loss, model.lm_head, hidden[part], labels[part],
                                 use_reentrant=False)
    loss = loss / len(labels)
    loss.backward()
    return loss


def stock(config, tokens):
    """Seconds of a step, and bytes of its peak beside weights and gradients."""
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16, attn_implementation="sdpa")
        ids = torch.randint(config.vocab_size, (1, tokens))
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    kept = sum(p.numel() * p.element_size() for p in model.parameters()) * 2
    times = []
    for _ in range(1 + CALLS):
        model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        start = time.perf_counter()
        step(model, ids)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() - kept
    del model, ids
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return sorted(times[1:])[CALLS // 2], peak


def ours(program, config, tokens, options):
    out = subprocess.run([program, config, str(tokens), "--calls", str(CALLS), *options], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    print("   ", out.strip(), flush=True)
    seconds = float(re.search(r"tokens: ([0-9.]+) s", out).group(1))
    return seconds, float(re.search(r"step memory ([0-9.]+) GiB", out).group(1)) * 2**30


def main():
    program, path, *rest = sys.argv[1:]
    lengths = [int(x) for x in rest if x.isdigit()]
    options = rest[len(lengths):]
    config = transformers.AutoConfig.from_pretrained(path)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "Transformers",
          transformers.__version__)
    rows = []
    for tokens in lengths:
        best = [[float("inf"), 0.0], [float("inf"), 0.0]]
        for _ in range(2):
            for i, (seconds, peak) in enumerate((stock(config, tokens),
                                                 ours(program, path, tokens, options))):
                best[i] = [min(best[i][0], seconds), max(best[i][1], peak)]
        (theirs, their_peak), (mine, my_peak) = best
        rows.append(f"{tokens:8} | {theirs:8.3f} {mine:8.3f} {theirs / mine:6.3f} "
                    f"| {their_peak / 2**30:8.2f} {my_peak / 2**30:8.2f} "
                    f"{my_peak / their_peak:6.3f}")
    print("  tokens | seconds: stock, Trireme, stock/Trireme | GiB: stock, Trireme, Trireme/stock")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
