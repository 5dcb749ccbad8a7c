#!/usr/bin/env python3
"""Make a golden folder from a Hugging Face causal language model, so that `trireme check DIR`
can compare Trireme with Transformers on it.

    tools/golden.py MODEL --out DIR [--seq 96] [--batch 1] [--packed] [--prompt-masked]

MODEL is a folder or a hub id; with --random-init a config.json (or its folder) is enough. Needs
PyTorch and Transformers (4.45 or newer). The format is described in tests/golden/README.md.

What is computed, in float64 unless --dtype says otherwise: eager attention under an explicit mask
(causal, inside a document, inside each layer's window), the mean cross-entropy over the labels
that are trained, its gradient, and --steps AdamW updates with clipping at norm 1.
"""
import argparse
import json
import os
import sys
import tempfile

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file

IGNORED = -100  # a label that is not trained
HYPER = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
         "max_grad_norm": 1.0}


def fail(text):
    sys.exit(f"golden.py: {text}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", help="model folder or hub id; with --random-init a config.json or its folder")
    add("--out", required=True, help="folder to write; must not hold a model yet")
    add("--seq", type=int, default=96, help="tokens of a row (96)")
    add("--batch", type=int, default=1, help="rows (1)")
    add("--packed", action="store_true", help="three documents a row, isolated from each other")
    add("--prompt-masked", action="store_true", help="do not train the first part of a document")
    add("--inputs", help="a reference.safetensors whose batch is used instead of a random one")
    add("--steps", type=int, default=3, help="AdamW steps (3)")
    add("--dtype", default="float64", choices=["float64", "float32"],
        help="of the computation (float64); mixtures of experts need float32")
    add("--seed", type=int, default=0, help="of the batch, and of random weights")
    add("--random-init", action="store_true", help="random weights, from the config alone")
    add("--save-dtype", choices=["float32", "float16", "bfloat16"],
        help="of the weights in DIR (that of the model); the reference computes on these weights")
    add("--max-shard-size", default="50GB", help="of the weight files in DIR (50GB)")
    add("--no-step-weights", action="store_true", help="leave out the weights after the last step")
    return parser.parse_args()


def dtype_argument(dtype):
    """The name of from_pretrained's dtype argument changed in Transformers 4.56."""
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    return {"dtype" if version >= (4, 56) else "torch_dtype": dtype}


def write_model(args):
    """Write config and weights to args.out in the dtype asked for."""
    torch.manual_seed(args.seed)
    if args.random_init:
        config = transformers.AutoConfig.from_pretrained(args.model)
        model = transformers.AutoModelForCausalLM.from_config(config)
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(args.model,
                                                                  **dtype_argument("auto"))
    if args.save_dtype:
        model = model.to(getattr(torch, args.save_dtype))
    model.save_pretrained(args.out, max_shard_size=args.max_shard_size)


def open_model(args):
    """Load what was written, so that the reference belongs to exactly the weights on disk."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        args.out, attn_implementation="eager", **dtype_argument(getattr(torch, args.dtype))).eval()


def document_ends(seq, packed):
    """Documents of uneven length: [0, e1), [e1, e2), [e2, seq)."""
    return [seq * 27 // 96, seq * 53 // 96, seq] if packed and seq >= 8 else [seq]


def make_batch(args, vocab):
    """input_ids, labels (not shifted) and position_ids, each (batch, seq)."""
    if args.inputs:
        stored = load_file(args.inputs)
        return stored["input_ids"], stored["labels"], stored["position_ids"]
    generator = torch.Generator().manual_seed(args.seed)
    ids = torch.randint(vocab, (args.batch, args.seq), generator=generator)
    labels = ids.clone()
    positions = torch.zeros_like(ids)
    begin = 0
    for end in document_ends(args.seq, args.packed):
        positions[:, begin:end] = torch.arange(end - begin)
        if args.prompt_masked:
            labels[:, begin:begin + (end - begin) // 3] = IGNORED
        begin = end
    return ids, labels, positions


def shift_labels(labels, positions):
    """Labels one to the left; the last token of a row or of a document predicts nothing."""
    shifted = torch.full_like(labels, IGNORED)
    same_document = positions[:, 1:] == positions[:, :-1] + 1
    shifted[:, :-1] = torch.where(same_document, labels[:, 1:], IGNORED)
    return shifted


def attention_mask(positions, window, dtype):
    """(batch, 1, seq, seq): 0 where a query sees a key, the lowest number where it does not."""
    begins = torch.ones_like(positions, dtype=torch.bool)
    begins[:, 1:] = positions[:, 1:] != positions[:, :-1] + 1
    document = begins.cumsum(dim=1)
    index = torch.arange(positions.shape[1])
    distance = index[:, None] - index[None, :]
    seen = (distance >= 0) & (document[:, :, None] == document[:, None, :])
    if window:
        seen &= distance < window
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
    return mask[:, None]


def model_masks(config, positions, dtype):
    """The mask, or one for each layer type where a model has several."""
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if not types:
        if getattr(config, "use_sliding_window", True) is False:
            window = None
        return attention_mask(positions, window, dtype)
    unknown = set(types) - {"full_attention", "sliding_attention"}
    if unknown:
        fail(f"layer type {sorted(unknown)[0]} of this model is not handled")
    masks = {kind: attention_mask(positions, window if kind == "sliding_attention" else None, dtype)
             for kind in set(types)}
    return masks if len(masks) > 1 else next(iter(masks.values()))


def adamw_step(params, moments, step, norm):
    """One AdamW update with decoupled decay (Loshchilov & Hutter 2019), written out plainly."""
    h = HYPER
    # As torch.nn.utils.clip_grad_norm_ does it, small constant included.
    clip = min(1.0, h["max_grad_norm"] / (norm + 1e-6))
    with torch.no_grad():
        for name, p in params.items():
            g = p.grad * clip
            m, v = moments.setdefault(name, (torch.zeros_like(p), torch.zeros_like(p)))
            m.mul_(h["beta1"]).add_(g, alpha=1 - h["beta1"])
            v.mul_(h["beta2"]).addcmul_(g, g, value=1 - h["beta2"])
            m_hat = m / (1 - h["beta1"] ** step)
            v_hat = v / (1 - h["beta2"] ** step)
            if p.dim() >= 2:
                p.mul_(1 - h["lr"] * h["weight_decay"])
            p.sub_(h["lr"] * m_hat / (v_hat.sqrt() + h["eps"]))


def weight_files(folder):
    return [os.path.join(folder, file) for file in sorted(os.listdir(folder))
            if file.endswith(".safetensors") and file != "reference.safetensors"]


def as_saved(model, tensors):
    """Rename tensors as the model's checkpoint names them (some models rename or split on save)."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, state_dict={k: t.contiguous() for k, t in tensors.items()})
        return {name: tensor for file in weight_files(folder)
                for name, tensor in load_file(file).items()}


def check_names(folder, tensors):
    """Every gradient must belong to a tensor of the weight files, or nobody could compare it."""
    names = set()
    for file in weight_files(folder):
        with safe_open(file, "pt") as stored:
            names.update(stored.keys())
    if set(tensors) - names:
        fail(f"{min(set(tensors) - names)} is not in the weight files of this model: not handled")


def main():
    args = parse_arguments()
    if os.path.exists(os.path.join(args.out, "config.json")):
        fail(f"{args.out} holds a model already: give another --out")
    if args.seq < 2 or args.batch < 1 or args.steps < 0:
        fail("--seq must be at least 2, --batch at least 1, --steps at least 0")
    write_model(args)
    model = open_model(args)
    dtype = getattr(torch, args.dtype)
    ids, labels, positions = make_batch(args, model.config.vocab_size)
    shifted = shift_labels(labels, positions)
    masks = model_masks(model.config, positions, dtype)
    params = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def forward():
        logits = model(input_ids=ids, position_ids=positions, attention_mask=masks,
                       use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).to(dtype), shifted.flatten(),
                                                 ignore_index=IGNORED)
        return logits, loss

    reference = {"input_ids": ids, "labels": labels, "position_ids": positions,
                 "shift_labels": shifted}
    losses, norms, moments = [], [], {}
    for step in range(1, args.steps + 1):
        model.zero_grad()
        logits, loss = forward()
        loss.backward()
        losses.append(loss.item())
        for name, p in params.items():
            if p.grad is None:
                fail(f"{name} has no gradient: not handled")
        norm = torch.sqrt(sum(p.grad.double().square().sum() for p in params.values())).item()
        norms.append(norm)
        if step == 1:
            reference["logits"] = logits.detach().float()
            gradients = as_saved(model, {name: p.grad.float() for name, p in params.items()})
            check_names(args.out, gradients)
            reference.update({f"grad.{name}": g for name, g in gradients.items()})
        adamw_step(params, moments, step, norm)
    with torch.no_grad():
        logits, loss = forward()
    losses.append(loss.item())
    reference.setdefault("logits", logits.float())
    if args.steps and not args.no_step_weights:
        weights = as_saved(model, {name: p.detach().float() for name, p in params.items()})
        reference.update({f"step{args.steps}.{name}": p for name, p in weights.items()})

    save_file({name: tensor.clone().contiguous() for name, tensor in reference.items()},
              os.path.join(args.out, "reference.safetensors"))
    with open(os.path.join(args.out, "reference.json"), "w", encoding="utf-8") as file:
        json.dump({
            "case": os.path.basename(os.path.normpath(args.out)),
            "losses": losses,
            "grad_norms": norms,
            "hyper": {**HYPER, "steps": args.steps,
                      "weight_decay_on": "parameters with two or more dimensions"},
            "batch": ids.shape[0],
            "seq": ids.shape[1],
            "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}, "
                         f"{dtype}, eager attention",
            "packed": bool((positions[:, 1:] != positions[:, :-1] + 1).any()),
            "prompt_masked": bool((labels == IGNORED).any()),
            "notes": "loss is the mean over shift_labels != -100; losses[i] is before step i, the "
                     "last one after the last step; position_ids restart at each packed document "
                     "and attention does not cross documents",
        }, file, indent=1)
        file.write("\n")
    print(f"{args.out}: losses {' '.join(f'{loss:.6f}' for loss in losses)}")


if __name__ == "__main__":
    main()
