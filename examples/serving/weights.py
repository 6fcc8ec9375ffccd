"""Writes a GGUF file of a language model with random weights.

    python3 weights.py llama-1b q4_k_m llama-1b.gguf

The shapes are those of published models, so the kernels that a server launches
and the bytes that they read are the same as with trained weights. The text that
such a model writes means nothing. The format is described in ggml's
docs/gguf.md; the blocks of quantised weights are described in ggml-common.h.
"""

import math
import os
import random
import struct
import sys
from dataclasses import dataclass

import load

ALIGNMENT = 32
STANDARD_DEVIATION = 0.02
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9


@dataclass(frozen=True)
class Model:
    """The shape of a model: counts of layers, heads and tokens, widths in elements."""

    architecture: str
    layers: int
    width: int
    feed_forward: int
    heads: int
    key_value_heads: int
    head_width: int
    vocabulary: int
    rope_base: float


MODELS = {
    "llama-1b": Model("llama", 16, 2048, 8192, 32, 8, 64, 128256, 500000.0),
    "llama-3b": Model("llama", 28, 3072, 8192, 24, 8, 128, 128256, 500000.0),
    "llama-8b": Model("llama", 32, 4096, 14336, 32, 8, 128, 128256, 500000.0),
    "qwen3-0.6b": Model("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 1000000.0),
    "qwen3-4b": Model("qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 1000000.0),
    "qwen3-8b": Model("qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 1000000.0),
}


@dataclass(frozen=True)
class Format:
    """A format of ggml: its number, and the weights and bytes of one block."""

    number: int
    weights: int
    bytes: int


F32, F16 = Format(0, 1, 4), Format(1, 1, 2)
Q8_0, Q4_K, Q6_K = Format(8, 32, 34), Format(12, 256, 144), Format(14, 256, 210)
FILE_TYPES = {"f16": 1, "q8_0": 7, "q4_k_m": 15}


def half(value):
    """The two bytes of a 16-bit floating-point number."""
    return struct.pack("<e", value)


def fix(data, size, at, value):
    """Writes the bytes of `value` at byte `at` of each block of `size` bytes."""
    for offset, byte in enumerate(value, at):
        data[offset::size] = bytes([byte]) * (len(data) // size)


def blocks(form, count, chosen):
    """`count` weights in format `form` as bytes, with mean 0 and about one standard deviation for all."""
    if form is F32:
        return struct.pack("<f", 1.0) * count
    data = bytearray(chosen.randbytes(count // form.weights * form.bytes))
    if form is F16:  # sign and fraction are random; the exponent gives magnitudes of 2^-6 to 2^-5
        data[1::2] = data[1::2].translate(bytes(byte & 0x83 | (15 - 6) << 2 for byte in range(256)))
    elif form is Q8_0:  # scale, then 32 signed bytes
        fix(data, form.bytes, 0, half(STANDARD_DEVIATION / 74))
    elif form is Q4_K:  # scale, scale of the minima, eight scales and minima of 6 bits, 256 numbers of 4 bits
        scale = STANDARD_DEVIATION / (32 * 4.6)
        fix(data, form.bytes, 0, half(scale) + half(7.5 * scale) + 8 * b"\xA0" + 4 * b"\0")  # each scale and minimum is 32
    elif form is Q6_K:  # low bits, high bits, sixteen signed scales, scale
        fix(data, form.bytes, 192, 16 * b"\x10" + half(STANDARD_DEVIATION / (16 * 18.5)))
    return bytes(data)


def tensors(model, quantity):
    """Name, shape (fastest dimension first) and format of each tensor of the file."""
    body = {"f16": F16, "q8_0": Q8_0, "q4_k_m": Q4_K}[quantity]
    finer = Q6_K if body is Q4_K else body
    queries, keys = model.heads * model.head_width, model.key_value_heads * model.head_width
    yield "token_embd.weight", (model.width, model.vocabulary), body
    yield "output_norm.weight", (model.width,), F32
    yield "output.weight", (model.width, model.vocabulary), finer
    for layer in range(model.layers):
        # The mixture "M" gives half of the layers the finer format for values and the last product.
        some = finer if layer < model.layers // 8 or layer >= 7 * model.layers // 8 or layer % 3 == 2 else body
        rows = [("attn_norm", (model.width,), F32), ("attn_q", (model.width, queries), body), ("attn_k", (model.width, keys), body),
                ("attn_v", (model.width, keys), some), ("attn_output", (queries, model.width), body), ("ffn_norm", (model.width,), F32),
                ("ffn_gate", (model.width, model.feed_forward), body), ("ffn_up", (model.width, model.feed_forward), body),
                ("ffn_down", (model.feed_forward, model.width), some)]
        if model.architecture == "qwen3":
            rows += [("attn_q_norm", (model.head_width,), F32), ("attn_k_norm", (model.head_width,), F32)]
        for name, shape, form in rows:
            yield f"blk.{layer}.{name}.weight", shape, form


def text(value):
    """A string of the file: its length, then its bytes."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def array(kind, values, pack):
    """An array value of the file."""
    return struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(pack(value) for value in values)


def metadata(model, quantity):
    """Name and value of each entry, values as they stand in the file."""
    integer = lambda value: struct.pack("<II", UINT32, value)
    number = lambda value: struct.pack("<If", FLOAT32, value)
    string = lambda value: struct.pack("<I", STRING) + text(value)
    arch = model.architecture
    # Bytes are ordinary tokens here: a server cannot send text that ends within a character.
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [1] * 256
    words = model.vocabulary - len(pieces)
    pieces, kinds = pieces + [f"\u2581w{word}" for word in range(words)], kinds + [1] * words
    return {
        "general.architecture": string(arch),
        "general.name": string("random weights"),
        "general.file_type": integer(FILE_TYPES[quantity]),
        "general.alignment": integer(ALIGNMENT),
        f"{arch}.context_length": integer(131072),
        f"{arch}.embedding_length": integer(model.width),
        f"{arch}.block_count": integer(model.layers),
        f"{arch}.feed_forward_length": integer(model.feed_forward),
        f"{arch}.attention.head_count": integer(model.heads),
        f"{arch}.attention.head_count_kv": integer(model.key_value_heads),
        f"{arch}.attention.key_length": integer(model.head_width),
        f"{arch}.attention.value_length": integer(model.head_width),
        f"{arch}.attention.layer_norm_rms_epsilon": number(1e-5),
        f"{arch}.rope.dimension_count": integer(model.head_width),
        f"{arch}.rope.freq_base": number(model.rope_base),
        f"{arch}.vocab_size": integer(model.vocabulary),
        "tokenizer.ggml.model": string("llama"),
        "tokenizer.ggml.tokens": array(STRING, pieces, text),
        "tokenizer.ggml.scores": array(FLOAT32, [-float(token) for token in range(len(pieces))], lambda value: struct.pack("<f", value)),
        "tokenizer.ggml.token_type": array(INT32, kinds, lambda value: struct.pack("<i", value)),
        "tokenizer.ggml.bos_token_id": integer(1),
        "tokenizer.ggml.eos_token_id": integer(2),
        "tokenizer.ggml.unknown_token_id": integer(0),
    }


def write(path, model, quantity, seed):
    """Writes the file; its bytes depend on the arguments alone. Returns its size in bytes."""
    entries, rows, offset = metadata(model, quantity), list(tensors(model, quantity)), 0
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(entries))
    head += b"".join(text(name) + value for name, value in entries.items())
    for name, shape, form in rows:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, form.number, offset)
        offset += math.prod(shape) // form.weights * form.bytes
        offset += -offset % ALIGNMENT
    with open(f"{path}.new", "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for row, (_, shape, form) in enumerate(rows):
            # A tensor is written in pieces of 2^24 weights, so that the largest needs little memory.
            chosen, left, written = random.Random(f"{seed} {row}"), math.prod(shape), 0
            while left:
                piece = min(left, 1 << 24)
                written += file.write(blocks(form, piece, chosen))
                left -= piece
            file.write(bytes(-written % ALIGNMENT))
        size = file.tell()
    os.replace(f"{path}.new", path)
    return size


def main():
    parser = load.Arguments(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("format", choices=FILE_TYPES)
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        size = write(arguments.output, MODELS[arguments.model], arguments.format, arguments.seed)
    except OSError as error:
        parser.exit(1, f"weights.py: {error}\n")
    print(f"{arguments.output}: {arguments.model}, {arguments.format}, {size / 2**30:.2f} GiB, seed {arguments.seed}", file=sys.stderr)


if __name__ == "__main__":
    main()
