#!/usr/bin/env python3
"""Make tests/golden/chat: what Python's jinja2 renders, in the environment that Transformers sets up.

    tools/chat_fixtures.py                    rewrite tests/golden/chat
    tools/chat_fixtures.py --out DIR FILE ... the same into DIR for templates of your own; then
                                              CHAT_FIXTURES=DIR build/.../unit_test_jinja compares

Needs jinja2 3.1 (pip install jinja2). Files written:

    snippets.jsonl    {"template", "text" or "error"}: chat_snippets.py over variables.json
    chats.jsonl       {"messages", "tools", "variables", "generation_prompt"}: random conversations
    NAME.jsonl        for templates/NAME.jinja: for each chat {"text"} or {"error"}, and for
                      templates with generation blocks their byte ranges
    generation_masks.jsonl  {"tokenizer", "chat", "mask"}: which tokens of templates/generation.jinja
                      Transformers trains (return_assistant_tokens_mask), with the tokenizers of
                      tests/golden/tokenizers; written where Hugging Face tokenizers is installed

The templates in templates/ are our own, written to give the prompts of the models they are named
after; qwen3.jinja is Qwen3's (Apache-2.0).
"""
import argparse
import contextlib
import datetime
import importlib.util
import json
import pathlib
import random
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

import chat_snippets

NOW = 1739145600  # 10 Feb 2025
CHATS = 50
OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "chat"


class Generation(jinja2.ext.Extension):
    """{% generation %}: where its blocks end up in the text."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        self.pieces, self.ranges = None, None

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_generation")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _generation(self, context, caller):
        text = caller()
        if self.pieces is not None:
            begin = len("".join(self.pieces).encode())
            self.ranges.append([begin, begin + len(text.encode())])
        return text

    @contextlib.contextmanager
    def track(self, pieces, ranges):
        self.pieces, self.ranges = pieces, ranges
        yield
        self.pieces, self.ranges = None, None


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def strftime_now(form):
        now = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=NOW)
        return now.strftime(form)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


ENV = make_environment()


def render(template, variables):
    """{"text", "ranges"} or {"error"}."""
    tracker = next(e for e in ENV.extensions.values() if isinstance(e, Generation))
    pieces, ranges = [], []
    try:
        if isinstance(template, str):
            template = ENV.from_string(template)
        with tracker.track(pieces, ranges):
            for piece in template.generate(**variables):
                pieces.append(piece)
        result = {"text": "".join(pieces)}
        if ranges:
            result["ranges"] = ranges
        return result
    except Exception as error:  # whatever Python raises is a refusal
        return {"error": f"{type(error).__name__}: {error}"[:100]}


WORDS = ("the quick brown fox jumps over lazy dog naïve café 日本語 😀 <tag> {x} [y] \"q\" 'a' \\n 42 "
         "3.14 & | ~ </think> [INST]").split(" ")


def text(rng):
    if rng.random() < 0.05:
        return ""
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 8)))
    if rng.random() < 0.2:
        words = "  " + words + "\n\n"
    if rng.random() < 0.2:
        words = words.replace(" ", "\n", 1)
    return words


def tool(rng, i):
    properties = {"location": {"type": "string", "description": text(rng)},
                  "n": {"type": rng.choice(["integer", "number"]), "enum": [1, 2.5, 3]}}
    return {"type": "function",
            "function": {"name": rng.choice(["get_weather", "search", "add"]) + str(i),
                         "description": text(rng) or "d",
                         "parameters": {"type": "object", "properties": properties,
                                        "required": ["location"]}}}


def tool_call(rng, tools):
    arguments = {"location": text(rng)}
    if rng.random() < 0.5:
        arguments["n"] = rng.choice([1, 2.5, True, None, 1e20])
    function = {"name": rng.choice(tools)["function"]["name"], "arguments": arguments}
    letters = "abcdefghij0123456789"
    return {"id": "".join(rng.choice(letters) for _ in range(9)), "type": "function",
            "function": function}


def chat(seed):
    rng = random.Random(seed)
    tools = [tool(rng, i) for i in range(rng.randint(1, 2))] if rng.random() < 0.3 else None
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": text(rng)})
    for _ in range(rng.randint(1, 3)):
        messages.append({"role": "user", "content": text(rng)})
        if tools and rng.random() < 0.6:
            calls = [tool_call(rng, tools) for _ in range(2 if rng.random() < 0.2 else 1)]
            messages.append({"role": "assistant", "content": rng.choice(["", text(rng)]),
                             "tool_calls": calls})
            for call in calls:
                messages.append({"role": "tool", "content": text(rng),
                                 "name": call["function"]["name"], "tool_call_id": call["id"]})
        answer = {"role": "assistant", "content": text(rng)}
        if rng.random() < 0.4:
            if rng.random() < 0.5:
                answer["content"] = "<think>\n" + text(rng) + "\n</think>\n\n" + answer["content"]
            else:
                answer["reasoning_content"] = text(rng)
        messages.append(answer)
    if rng.random() < 0.3:
        messages.pop()
    variables = {"bos_token": "<s>", "eos_token": "</s>"}
    if seed % 7 in (3, 4):
        variables["enable_thinking"] = seed % 7 == 4
    return {"messages": messages, "tools": tools, "variables": variables,
            "generation_prompt": seed % 2 == 1}


def context(conversation):
    return {**conversation["variables"], "messages": conversation["messages"],
            "tools": conversation["tools"], "documents": None,
            "add_generation_prompt": conversation["generation_prompt"]}


def write_lines(path, values):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def token_masks(chats, texts, folder):
    """As apply_chat_template of Transformers makes them from character ranges."""
    import tokenizers
    for name in "llama2_style", "llama3_style", "qwen_style":
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / name / "tokenizer.json"))
        for index, (one, text) in enumerate(zip(chats, texts)):
            if one["generation_prompt"]:
                continue
            data = text["text"].encode()
            encoding = tokenizer.encode(text["text"], add_special_tokens=False)
            mask = [0] * len(encoding.ids)
            for begin, end in text.get("ranges", []):
                first = encoding.char_to_token(len(data[:begin].decode()))
                last = encoding.char_to_token(len(data[:end].decode()) - 1)
                for t in range(first, last + 1 if last else len(mask)):
                    mask[t] = 1
            yield {"tokenizer": name, "chat": index, "mask": "".join(map(str, mask))}


def main():
    parser = argparse.ArgumentParser(description="Make tests/golden/chat by Python's jinja2.")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="folder to write")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="templates to render instead "
                        "of those in the folder; they are copied into it")
    arguments = parser.parse_args()
    out = arguments.out
    (out / "templates").mkdir(parents=True, exist_ok=True)
    for path in arguments.files:
        (out / "templates" / path.name).write_bytes(path.read_bytes())
    with open(out / "variables.json", "w", encoding="utf-8", newline="\n") as file:
        json.dump(chat_snippets.VARIABLES, file, ensure_ascii=False, indent=1)
        file.write("\n")
    write_lines(out / "snippets.jsonl", ({"template": t, **render(t, chat_snippets.VARIABLES)}
                                         for t in chat_snippets.snippets()))
    chats = [chat(seed) for seed in range(CHATS)]
    write_lines(out / "chats.jsonl", chats)
    for path in sorted((out / "templates").glob("*.jinja")):
        template = ENV.from_string(path.read_bytes().decode())
        results = [render(template, context(c)) for c in chats]
        write_lines(out / (path.stem + ".jsonl"), results)
        refused = sum("error" in r for r in results)
        print(f"{path.stem}: {CHATS - refused} rendered, {refused} refused", file=sys.stderr)
        if path.stem == "generation" and importlib.util.find_spec("tokenizers"):
            write_lines(out / "generation_masks.jsonl",
                        token_masks(chats, results, OUT.parent / "tokenizers"))


if __name__ == "__main__":
    main()
