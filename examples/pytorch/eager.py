"""Operators and models of PyTorch outside of torch.compile, each compared with the same on the host. Prints Markdown.

    PYTHONPATH=python demarc exec --part 1/2 -- python3 examples/pytorch/eager.py

A row has the result, the seconds of the first call, which compiles, and the microseconds of later ones (mean of 20). The
models have random weights. Last come the operators that ran on the host. Exit code 0; 1: there is no such group; 2: the
machine lacks something; 3: a result differs or an operator failed.
"""
import argparse
import sys
import time
import warnings

from timing import import_torch

STEPS = 6  # an optimiser takes so many


def operators(torch):
    """For each operator its name, a function, and the sizes of its arguments."""
    f = torch.nn.functional
    yield "x + 1", lambda x: x + 1, (64, 64)
    yield "x * y, broadcast", lambda x, y: x * y, (64, 64), (64,)
    yield "x.t().contiguous()", lambda x: x.t().contiguous(), (64, 32)
    yield "x[:, 0] = 5", lambda x: x.index_fill(1, torch.zeros(1, dtype=torch.int64, device=x.device), 5), (64, 64)
    yield "sum", lambda x: x.sum(-1), (64, 640)
    yield "softmax", lambda x: x.softmax(-1), (64, 640)
    yield "layer_norm", lambda x: f.layer_norm(x, (64,)), (16, 64)
    yield "cumsum", lambda x: x.cumsum(-1), (16, 64)
    yield "product", lambda x, y: x @ y, (256, 64), (64, 128)
    yield "linear", f.linear, (16, 64), (128, 64), (128,)
    yield "attention", lambda *x: f.scaled_dot_product_attention(*x, is_causal=True), *[(2, 4, 32, 16)] * 3
    yield "topk", lambda x: torch.topk(x, 4)[0], (16, 64)
    yield "sort", lambda x: x.sort(-1)[0], (4, 3000)
    yield "x[x > 0]", lambda x: x[x > 0], (16, 64)


def convolutions(torch):
    f = torch.nn.functional
    yield "conv2d", lambda x, w: f.conv2d(x, w, padding=1), (2, 8, 16, 16), (16, 8, 3, 3)
    yield "conv1d", f.conv1d, (2, 8, 16), (16, 8, 3)
    yield "conv2d of 8 groups", lambda x, w: f.conv2d(x, w, padding=1, groups=8), (2, 8, 16, 16), (8, 1, 3, 3)
    yield "conv2d, dilated", lambda x, w: f.conv2d(x, w, padding=2, dilation=2), (2, 8, 16, 16), (16, 8, 3, 3)
    yield "conv_transpose2d", lambda x, w: f.conv_transpose2d(x, w, stride=2), (2, 8, 16, 16), (8, 4, 2, 2)

    def gradient(x, w):
        x, w = (tensor.clone().requires_grad_() for tensor in (x, w))
        f.conv2d(x, w, padding=1, stride=2).square().sum().backward()
        return torch.cat([x.grad.flatten(), w.grad.flatten()])

    yield "gradients of conv2d", gradient, (2, 8, 16, 16), (16, 8, 3, 3)


def trained(torch, model, optimiser, x):
    """The output after STEPS steps towards zero."""
    model = model.to(x.device)
    step = optimiser(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        step.zero_grad()
        model(x).square().mean().backward()
        step.step()
    return model(x).detach()


def models(torch):
    nn = torch.nn

    def seeded(make):
        torch.manual_seed(3)
        return make()

    def inferred(make):
        def run(x):
            with torch.inference_mode():
                return seeded(make).eval().to(x.device)(x)
        return run

    def network():
        return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))

    def convolutional():
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU(),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

    yield "convolutional network", inferred(convolutional), (4, 3, 16, 16)
    yield "transformer encoder", inferred(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)), (2, 16, 64)
    yield "LSTM", lambda x: inferred(lambda: nn.LSTM(16, 32))(x)[0], (5, 2, 16)
    yield "training with SGD", lambda x: trained(torch, seeded(network), torch.optim.SGD, x), (32, 64)
    yield "training with AdamW", lambda x: trained(torch, seeded(network), torch.optim.AdamW, x), (32, 64)


def measured(torch, name, function, sizes):
    """The cells of a row, and whether the result is that of the host."""
    torch.manual_seed(1)
    given = [torch.randn(size) for size in sizes]
    on_card = [tensor.cuda() for tensor in given]
    begin = time.perf_counter()
    found = function(*on_card)
    torch.cuda.synchronize()
    first = time.perf_counter() - begin
    right = torch.allclose(found.cpu(), function(*given), rtol=1e-3, atol=1e-3)
    begin = time.perf_counter()
    for _ in range(20):
        function(*on_card)
    torch.cuda.synchronize()
    return right, f"{first:.2f} | {(time.perf_counter() - begin) / 20 * 1e6:.0f}"


def generate(torch):
    """Tokens of a small Llama of Hugging Face transformers, greedy, with a growing and with a static cache."""
    import transformers
    torch.manual_seed(5)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, vocab_size=4096)).eval()
    tokens = torch.randint(0, 4096, (2, 64))
    asked = {"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0}
    wanted = model.generate(tokens, **asked)
    model, tokens = model.cuda(), tokens.cuda()
    for cache in ({}, {"cache_implementation": "static"}):
        times = []
        for _ in range(2):
            begin = time.perf_counter()
            found = model.generate(tokens, **asked, **cache)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        yield (f"generate() of transformers {transformers.__version__}, {'static cache, compiled' if cache else 'eager'}, 24 tokens",
               torch.equal(found.cpu(), wanted), f"{times[0]:.2f} | {times[1] * 1e6:.0f}")


GROUPS = {"operators": operators, "convolutions": convolutions, "models": models}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", help=f"which of {', '.join(GROUPS)}, generate (all)")
    arguments = parser.parse_args()
    for group in arguments.groups:
        if group not in [*GROUPS, "generate"]:
            print(f"eager.py: there is no group '{group}': choose from {', '.join(GROUPS)}, generate", file=sys.stderr)
            return 1
    chosen = arguments.groups or [*GROUPS, "generate"]
    torch = import_torch()
    warnings.simplefilter("ignore")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n| what | as on the host | first, s | later, us |\n|---|---|---:|---:|")
    wrong = 0

    def row(name, right, cells):
        nonlocal wrong
        wrong += not right
        print(f"| {name} | {'yes' if right else 'NO'} | {cells} |", flush=True)

    for group in chosen:
        for name, function, *sizes in GROUPS[group](torch) if group in GROUPS else ():
            try:
                row(name, *measured(torch, name, function, sizes))
            except Exception as error:  # an operator that fails takes no other's row away
                row(name, False, f"{type(error).__name__}: {str(error).splitlines()[0][:120]} | ")
    if "generate" in chosen:
        try:
            for found in generate(torch):
                row(*found)
        except Exception as error:
            row("generate()", False, f"{type(error).__name__}: {str(error).splitlines()[0][:120]} | ")
    if "demarc.torch" in sys.modules:
        host = [name for name, way in sys.modules["demarc.torch"].report().operators if way == "host"]
        print(f"\nOn the host: {', '.join(host) or 'none'}")
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
