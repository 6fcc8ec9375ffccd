"""Programs of machine code, as PyTorch, CuPy and JAX are installed: each prints the digest of its result.

usage: python3 as_installed.py NAME, or --list
The same NAME on the same card and versions prints the same line, with and without a tenant.
"""

import hashlib
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # products whose sums have one order
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the card


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()[:32]


def torch_program(work):
    def run():
        import torch
        torch.manual_seed(1)
        torch.use_deterministic_algorithms(True, warn_only=True)
        with torch.no_grad():
            return digest(work(torch).float().cpu().numpy())
    return run


def model(build, *shape):
    def work(torch):
        net = build(torch).cuda().eval()
        return net(torch.randn(*shape, device="cuda"))
    return torch_program(work)


def vision(name, size=224):
    def work(torch):
        import torchvision
        net = getattr(torchvision.models, name)().cuda().eval()
        return net(torch.randn(2, 3, size, size, device="cuda"))
    return torch_program(work)


def decoder(torch):
    """Greedy decoding with a cache, as generate() does it."""
    width, heads, layers, words = 512, 8, 4, 1000
    embed = torch.randn(words, width, device="cuda") * 0.02
    weights = [[torch.randn(width, width, device="cuda") * 0.04 for _ in range(6)] for _ in range(layers)]
    keys, values = [[] for _ in range(layers)], [[] for _ in range(layers)]
    token, said = torch.tensor([7], device="cuda"), []
    for _ in range(24):
        x = embed[token]
        for i, (q, k, v, o, up, down) in enumerate(weights):
            split = lambda y: y.view(1, heads, -1).transpose(0, 1)
            keys[i].append(split(x @ k)), values[i].append(split(x @ v))
            seen = torch.nn.functional.scaled_dot_product_attention(
                split(x @ q), torch.cat(keys[i], 1), torch.cat(values[i], 1))
            x = x + seen.transpose(0, 1).reshape(1, width) @ o
            x = x + torch.nn.functional.gelu(x @ up) @ down
        token = torch.argmax(x @ embed.T, 1)
        said.append(token)
    return torch.cat(said)


def unet(torch):
    nn = torch.nn
    block = lambda a, b: nn.Sequential(nn.GroupNorm(8, a), nn.SiLU(), nn.Conv2d(a, b, 3, padding=1))
    down, deep = block(32, 64).cuda(), nn.Sequential(block(64, 128), block(128, 64)).cuda()
    first, up = nn.Conv2d(3, 32, 3, padding=1).cuda(), block(128, 32).cuda()
    last = nn.Conv2d(32, 3, 3, padding=1).cuda()
    x = torch.randn(1, 3, 128, 128, device="cuda")
    for _ in range(4):
        a = down(first(x))
        b = nn.functional.interpolate(deep(nn.functional.avg_pool2d(a, 2)), scale_factor=2.0)
        x = x - 0.1 * last(up(torch.cat([a, b], 1)))
    return x


def training(torch):
    net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    x, y = torch.randn(512, 256, device="cuda"), torch.randint(10, (512,), device="cuda")
    with torch.enable_grad():
        for _ in range(20):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            adam.step()
    return net(x)


def graph(torch):
    """A captured stream of library kernels, replayed."""
    a, b = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
    out = torch.zeros_like(a)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            out.copy_(torch.softmax(a @ b, 1) @ a)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out.copy_(torch.softmax(a @ b, 1) @ a)
    for _ in range(3):
        a.add_(1)
        captured.replay()
    return out


def transformers_model(kind):
    def work(torch):
        import transformers
        config = {"bert": lambda: transformers.BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4),
                  "gpt2": lambda: transformers.GPT2Config(n_embd=256, n_layer=4, n_head=4),
                  "vit": lambda: transformers.ViTConfig(hidden_size=192, num_hidden_layers=4, num_attention_heads=3)}[kind]()
        net = transformers.AutoModel.from_config(config).cuda().eval()
        if kind == "vit":
            return net(torch.randn(1, 3, 224, 224, device="cuda")).last_hidden_state
        return net(torch.randint(0, 1000, (1, 64), device="cuda")).last_hidden_state
    return torch_program(work)


TENSOR = {
    "torch-mm": lambda t: t.randn(1024, 1024, device="cuda") @ t.randn(1024, 1024, device="cuda"),
    "torch-mm-half": lambda t: t.randn(1024, 1024, device="cuda").half() @ t.randn(1024, 1024, device="cuda").half(),
    "torch-mm-bf16": lambda t: t.randn(2048, 512, device="cuda").bfloat16() @ t.randn(512, 2048, device="cuda").bfloat16(),
    "torch-bmm": lambda t: t.bmm(t.randn(16, 128, 64, device="cuda"), t.randn(16, 64, 128, device="cuda")),
    "torch-conv2d": lambda t: t.nn.functional.conv2d(t.randn(8, 16, 64, 64, device="cuda"), t.randn(32, 16, 3, 3, device="cuda")),
    "torch-attention": lambda t: t.nn.functional.scaled_dot_product_attention(
        *(t.randn(2, 8, 512, 64, device="cuda").half() for _ in range(3))),
    "torch-topk": lambda t: t.topk(t.randn(64, 4096, device="cuda"), 32).values,
    "torch-sort": lambda t: t.sort(t.randn(100000, device="cuda")).values,
    "torch-softmax": lambda t: t.softmax(t.randn(512, 4096, device="cuda"), 1),
    "torch-cumsum": lambda t: t.cumsum(t.randint(9, (1 << 20,), device="cuda"), 0),
    "torch-gather": lambda t: t.randn(1 << 20, device="cuda")[t.randint(1 << 20, (1 << 18,), device="cuda")],
    "torch-embedding": lambda t: t.nn.functional.embedding(t.randint(1000, (64, 32), device="cuda"), t.randn(1000, 256, device="cuda")),
    "torch-layernorm": lambda t: t.nn.functional.layer_norm(t.randn(512, 1024, device="cuda"), (1024,)),
    "torch-fft": lambda t: t.fft.fft2(t.randn(256, 256, device="cuda")).real,
    "torch-solve": lambda t: t.linalg.solve(t.randn(128, 128, device="cuda") + 20 * t.eye(128, device="cuda"), t.randn(128, 8, device="cuda")),
    "torch-cholesky": lambda t: t.linalg.cholesky((lambda a: a @ a.T + 99 * t.eye(256, device="cuda"))(t.randn(256, 256, device="cuda"))),
    "torch-sparse": lambda t: t.sparse.mm(t.eye(512, device="cuda").to_sparse(), t.randn(512, 64, device="cuda")),
    "torch-unique": lambda t: t.unique(t.randint(5000, (100000,), device="cuda")),
    "torch-decoder": decoder,
    "torch-unet": unet,
    "torch-training": training,
    "torch-graph": graph,
}


def cupy_program(work):
    def run():
        import cupy
        return digest(cupy.asnumpy(work(cupy, cupy.random.RandomState(1))))
    return run


CUPY = {
    "cupy-add": lambda c, r: r.rand(1 << 20) + 1,
    "cupy-sum": lambda c, r: c.sum(r.randint(0, 99, (1 << 20,)), keepdims=True),
    "cupy-product": lambda c, r: c.arange(1 << 20).reshape(1024, 1024).astype(c.float32) @ c.eye(1024, dtype=c.float32),
    "cupy-sort": lambda c, r: c.sort(r.rand(100000)),
    "cupy-fft": lambda c, r: c.fft.fft(c.arange(4096, dtype=c.float32)).real,
    "cupy-where": lambda c, r: c.where(c.arange(100000) % 3 == 0, 1, 2),
}


def jax_program(work):
    def run():
        import jax
        import jax.numpy as jnp
        import numpy
        return digest(numpy.asarray(work(jax, jnp, jax.random.key(1))))
    return run


JAX = {
    "jax-add": lambda j, n, k: n.arange(1 << 20) + 1,
    "jax-product": lambda j, n, k: n.dot(j.random.normal(k, (512, 512)), n.eye(512)),
    "jax-jit": lambda j, n, k: j.jit(lambda x: n.tanh(x @ x.T).sum(1))(j.random.normal(k, (256, 256))),
    "jax-grad": lambda j, n, k: j.grad(lambda x: n.sum(n.sin(x) ** 2))(n.arange(4096.0)),
    "jax-scan": lambda j, n, k: j.lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, n.arange(4096.0))[1],
    "jax-sort": lambda j, n, k: n.sort(j.random.normal(k, (100000,))),
}

PROGRAMS = {name: torch_program(work) for name, work in TENSOR.items()}
PROGRAMS |= {"torch-mlp": model(lambda t: t.nn.Sequential(t.nn.Linear(512, 2048), t.nn.GELU(), t.nn.Linear(2048, 512)), 64, 512),
             "torch-lstm": torch_program(lambda t: t.nn.LSTM(128, 256, 2).cuda()(t.randn(32, 8, 128, device="cuda"))[0]),
             "torch-gru": torch_program(lambda t: t.nn.GRU(128, 256).cuda()(t.randn(32, 8, 128, device="cuda"))[0]),
             "torch-encoder": model(lambda t: t.nn.TransformerEncoder(
                 t.nn.TransformerEncoderLayer(256, 8, batch_first=True), 4), 4, 128, 256)}
PROGRAMS |= {f"vision-{name}": vision(name) for name in ("resnet18", "resnet50", "mobilenet_v3_small", "efficientnet_b0", "vgg11",
                                                         "vit_b_16", "convnext_tiny", "densenet121")}
PROGRAMS |= {f"transformers-{kind}": transformers_model(kind) for kind in ("bert", "gpt2", "vit")}
PROGRAMS |= {name: cupy_program(work) for name, work in CUPY.items()}
PROGRAMS |= {name: jax_program(work) for name, work in JAX.items()}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in {*PROGRAMS, "--list"}:
        sys.exit(__doc__)
    print("\n".join(PROGRAMS) if sys.argv[1] == "--list" else f"{sys.argv[1]} {PROGRAMS[sys.argv[1]]()}")
