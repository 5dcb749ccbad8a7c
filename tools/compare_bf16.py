#!/usr/bin/env python3
"""Hold Trireme's bfloat16 error on golden folders against that of PyTorch in bfloat16.

usage: compare_bf16.py path/to/trireme FOLDER [FOLDER ...]

Needs PyTorch with CUDA and Transformers. Both compute the first step's loss and gradients on the
weights of the folder rounded to bfloat16, and are held against the folder's float64 reference. The
error of a gradient is ||got - want|| / ||want||; the worst tensor counts. Exit 1 when Trireme's loss
is off by more than 2e-2 or its worst gradient is more than twice as wrong as PyTorch's.
"""
import json
import os
import re
import subprocess
import sys

import torch
import transformers
from safetensors.torch import load_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import golden  # noqa: E402  the masks and the shift are the reference's own


def pytorch(folder):
    """Relative error of the loss, of the worst gradient, and that gradient's name."""
    reference = load_file(os.path.join(folder, "reference.safetensors"))
    with open(os.path.join(folder, "reference.json"), encoding="utf-8") as file:
        want_loss = json.load(file)["losses"][0]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, attn_implementation="eager").cuda()
    ids, labels, positions = (reference[name].long() for name in
                              ("input_ids", "labels", "position_ids"))
    masks = golden.model_masks(model.config, positions, torch.bfloat16)
    masks = ({kind: mask.cuda() for kind, mask in masks.items()} if isinstance(masks, dict)
             else masks.cuda())
    logits = model(input_ids=ids.cuda(), attention_mask=masks, position_ids=positions.cuda(),
                   use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), golden.shift_labels(labels, positions).cuda().flatten(),
        ignore_index=golden.IGNORED)
    loss.backward()
    grads = golden.as_saved(model, {name: p.grad.float().cpu()
                                    for name, p in model.named_parameters()})
    grads = {name: g.double() for name, g in grads.items()}
    floor = 1e-6 * torch.sqrt(sum((g**2).sum() for g in grads.values()))
    worst, worst_name = 0.0, ""
    for name, got in grads.items():
        want = reference["grad." + name].double()
        error = ((got - want).norm() / torch.maximum(want.norm(), floor)).item()
        if not error <= worst:
            worst, worst_name = error, name
    return abs(loss.item() - want_loss) / abs(want_loss), worst, worst_name


def trireme(program, folder):
    out = subprocess.run([program, "check", folder, "--backend", "cuda", "--dtype", "bfloat16"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False).stdout
    try:
        loss = float(re.search(r"^  loss  +([0-9.e+-]+)", out, re.M).group(1))
        gradient, name = re.search(r"^  worst gradient +([0-9.e+-]+) +\S+ +\S+ +(\S+)", out,
                                   re.M).groups()
    except AttributeError:
        sys.exit(out)
    return loss, float(gradient), name


def main():
    bad = 0
    print(f"{'':22} | loss: PyTorch, Trireme | worst gradient: PyTorch, Trireme, ratio")
    for folder in sys.argv[2:]:
        theirs, mine = pytorch(folder), trireme(sys.argv[1], folder)
        ratio = mine[1] / theirs[1]
        ok = mine[0] <= 2e-2 and ratio <= 2
        bad += not ok
        print(f"{os.path.basename(folder.rstrip('/')):22} | {theirs[0]:9.2e} {mine[0]:9.2e} | "
              f"{theirs[1]:9.2e} {mine[1]:9.2e} {ratio:6.2f} {'ok' if ok else 'OVER':4} "
              f"({theirs[2]}, {mine[2]})", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
