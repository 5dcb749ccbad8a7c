#!/usr/bin/env python3
"""Write a Hugging Face folder from a GGUF file, so that a model that can only be had quantised
serves in tests: its weights are dequantised, not improved.

    tools/gguf_to_hf.py MODEL.gguf --out DIR [--dtype float32|bfloat16]

Reads what llama.cpp's converter makes of a dense Llama with SmolLM's tokenizer, and refuses the
rest by name. float32 (the default) holds the dequantised values exactly; bfloat16 rounds them to
nearest even. Needs NumPy and the package gguf. docs/measurements.md has a model and a text to
try it on.

Writes config.json, generation_config.json, model.safetensors, tokenizer.json,
tokenizer_config.json and, if the file has one, chat_template.jinja.
"""
import argparse
import json
import os
import re
import struct
import sys

import gguf
import numpy

ARCHITECTURE = "llama"
CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type; NORMAL tokens come out of merges

# Keys of a dense Llama that has nothing special about it. Another key may change what the model
# computes, so it is refused.
KNOWN_KEYS = {f"{ARCHITECTURE}.{name}" for name in (
    "block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
    "attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon",
    "attention.key_length", "attention.value_length", "rope.freq_base", "rope.dimension_count")}

GLOBAL_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",  # absent where it is the embedding
}
LAYER_TENSORS = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}

# tokenizer.ggml.pre names what splits text before the merges: a table in llama.cpp.
PRE_TOKENIZERS = {
    "smollm": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
         "use_regex": True}]},
}


def fail(text):
    sys.exit(f"gguf_to_hf.py: {text}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the GGUF file")
    parser.add_argument("--out", required=True, help="folder to write; must not hold a model yet")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"],
                        help="of model.safetensors (float32)")
    return parser.parse_args()


class Metadata:
    """The key-value part of a GGUF file."""

    def __init__(self, reader):
        self.values = {key: field.contents() for key, field in reader.fields.items()}

    def get(self, key, default=None):
        return self.values.get(key, default)

    def need(self, key):
        if key not in self.values:
            fail(f"the file has no {key}")
        return self.values[key]

    def architecture(self, name, default=None):
        key = f"{ARCHITECTURE}.{name}"
        return self.need(key) if default is None else self.get(key, default)


def shortest_decimal(value):
    """1e-05 rather than 9.999999747378752e-06: GGUF holds float32, config.json decimals."""
    return float(str(numpy.float32(value)))


def check_supported(meta):
    if meta.need("general.architecture") != ARCHITECTURE:
        fail(f"general.architecture is {meta.get('general.architecture')!r}; "
             f"only {ARCHITECTURE!r} is converted")
    for key in meta.values:
        if key.startswith(f"{ARCHITECTURE}.") and key not in KNOWN_KEYS:
            fail(f"the key {key} is not understood; it may change what the model computes")


def make_config(meta, tied, dtype):
    hidden = meta.architecture("embedding_length")
    heads = meta.architecture("attention.head_count")
    head_dim = meta.architecture("attention.key_length", hidden // heads)
    for name in ("attention.value_length", "rope.dimension_count"):
        if meta.architecture(name, head_dim) != head_dim:
            fail(f"{ARCHITECTURE}.{name} is {meta.architecture(name)}, heads have {head_dim}: "
                 "a Llama of Transformers has one head size")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(meta.need("tokenizer.ggml.tokens")),
        "hidden_size": hidden,
        "intermediate_size": meta.architecture("feed_forward_length"),
        "num_hidden_layers": meta.architecture("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": meta.architecture("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": meta.architecture("context_length"),
        "rms_norm_eps": shortest_decimal(meta.architecture("attention.layer_norm_rms_epsilon")),
        "rope_theta": shortest_decimal(meta.architecture("rope.freq_base", 10000.0)),
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        **token_ids(meta),
        "torch_dtype": dtype,
    }


def token_ids(meta):
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    ids = {out: meta.get(f"tokenizer.ggml.{name}_token_id") for out, name in names.items()}
    return {name: token for name, token in ids.items() if token is not None}


def tensor_name(name):
    if name in GLOBAL_TENSORS:
        return GLOBAL_TENSORS[name]
    match = re.fullmatch(r"blk\.(\d+)\.(.+)", name)
    if not match or match[2] not in LAYER_TENSORS:
        fail(f"the tensor {name} is not that of a plain Llama")
    return f"model.layers.{match[1]}.{LAYER_TENSORS[match[2]]}"


def unpermute(weight, heads):
    """Rows of q or k as Transformers has them.

    llama.cpp rotates neighbours (2i, 2i + 1), Transformers the halves (i, i + D/2) of a head;
    its converter therefore interleaves the two halves of each head's rows.
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def read_tensors(reader, config):
    """Yields (name, float32 array), in the order of the file."""
    heads = {"self_attn.q_proj": config["num_attention_heads"],
             "self_attn.k_proj": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        name = tensor_name(tensor.name)
        weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        shape = tuple(int(n) for n in reversed(tensor.shape))
        weight = numpy.ascontiguousarray(weight, dtype=numpy.float32).reshape(shape)
        for part, count in heads.items():
            if part in name:
                weight = unpermute(weight, count)
        yield name, weight


def check_shapes(tensors, config):
    """A file that lacks a tensor, or has one of another shape, is better refused here."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    q = config["num_attention_heads"] * config["head_dim"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    mlp = config["intermediate_size"]
    want = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        want["lm_head.weight"] = (vocab, hidden)
    shapes = {"attn_norm": (hidden,), "attn_q": (q, hidden), "attn_k": (kv, hidden),
              "attn_v": (kv, hidden), "attn_output": (hidden, q), "ffn_norm": (hidden,),
              "ffn_gate": (mlp, hidden), "ffn_up": (mlp, hidden), "ffn_down": (hidden, mlp)}
    for layer in range(config["num_hidden_layers"]):
        for part, shape in shapes.items():
            want[tensor_name(f"blk.{layer}.{part}.weight")] = shape
    have = {name: weight.shape for name, weight in tensors.items()}
    for name in sorted(want.keys() | have.keys()):
        if want.get(name) != have.get(name):
            fail(f"{name} has shape {have.get(name)}, the metadata ask for {want.get(name)}")


def to_bfloat16(array):
    """The upper halves of float32, rounded to nearest even; weights are finite."""
    bits = array.view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def write_safetensors(path, tensors, dtype):
    """u64 header length, the header as JSON padded to 8 bytes, then the tensors."""
    size, code = (2, "BF16") if dtype == "bfloat16" else (4, "F32")
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, array in tensors.items():
        end = offset + array.size * size
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write((to_bfloat16(array) if dtype == "bfloat16" else array).tobytes())


def make_tokenizer(meta):
    """tokenizer.json. All tokens stand in the vocabulary, special ones in added_tokens too."""
    pre = meta.get("tokenizer.ggml.pre")
    if meta.need("tokenizer.ggml.model") != "gpt2" or pre not in PRE_TOKENIZERS:
        fail(f"the tokenizer is {meta.get('tokenizer.ggml.model')!r} with {pre!r} before it; "
             f"only 'gpt2' with {', '.join(map(repr, PRE_TOKENIZERS))} is converted")
    for flag in ("add_bos_token", "add_eos_token", "add_space_prefix"):
        if meta.get(f"tokenizer.ggml.{flag}"):
            fail(f"tokenizer.ggml.{flag} is set, which is not converted")
    tokens = meta.need("tokenizer.ggml.tokens")
    kinds = meta.need("tokenizer.ggml.token_type")
    added = [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": kind == CONTROL}
             for i, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZERS[pre],
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": meta.need("tokenizer.ggml.merges")},
    }


def make_tokenizer_config(meta):
    tokens = meta.need("tokenizer.ggml.tokens")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
              "model_max_length": meta.architecture("context_length")}
    for out, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        token = meta.get(f"tokenizer.ggml.{name}_token_id")
        if token is not None:
            config[f"{out}_token"] = tokens[token]
    return config


def write_text(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def write_json(folder, name, value):
    write_text(folder, name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def main():
    args = parse_arguments()
    if os.path.exists(os.path.join(args.out, "config.json")):
        fail(f"{args.out} already holds a model")
    try:
        reader = gguf.GGUFReader(args.model)
    except (OSError, ValueError, IndexError) as error:
        fail(f"{args.model}: not a GGUF file that can be read: {error}")
    meta = Metadata(reader)
    check_supported(meta)
    tied = all(tensor.name != "output.weight" for tensor in reader.tensors)
    config = make_config(meta, tied, args.dtype)
    tokenizer = make_tokenizer(meta)
    tensors = dict(read_tensors(reader, config))
    check_shapes(tensors, config)

    os.makedirs(args.out, exist_ok=True)
    write_safetensors(os.path.join(args.out, "model.safetensors"), tensors, args.dtype)
    write_json(args.out, "tokenizer.json", tokenizer)
    write_json(args.out, "tokenizer_config.json", make_tokenizer_config(meta))
    write_json(args.out, "generation_config.json", token_ids(meta))
    template = meta.get("tokenizer.chat_template")
    if template:
        write_text(args.out, "chat_template.jinja", template)
    write_json(args.out, "config.json", config)  # last: what says that the folder is whole
    print(f"{args.out}: {sum(a.size for a in tensors.values())} parameters as {args.dtype}, "
          f"{len(tensors)} tensors")


if __name__ == "__main__":
    main()
