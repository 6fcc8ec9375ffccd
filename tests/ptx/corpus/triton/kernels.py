# The Triton kernels of which the modules beside this file were made: `python3 kernels.py FOLDER` with Triton 3.6 writes them
# anew (names of its own files in `.file` were cut to triton/...). No build and no test runs it.
import os
import sys

import triton
import triton.language as tl
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget

out = sys.argv[1]
os.makedirs(out, exist_ok=True)


@triton.jit
def softmax(dst, src, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(src + row * stride + at, mask=at < n, other=-float('inf'))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(dst + row * stride + at, e / tl.sum(e, axis=0), mask=at < n)

@triton.jit
def matmul(a, b, c, m, n, k, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    l = tl.arange(0, K)
    pa = a + i[:, None] * sa + l[None, :]
    pb = b + l[:, None] * sb + j[None, :]
    acc = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        x = tl.load(pa, mask=l[None, :] < k - step * K, other=0.0)
        y = tl.load(pb, mask=l[:, None] < k - step * K, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += K
        pb += K * sb
    tl.store(c + i[:, None] * sc + j[None, :], acc.to(tl.float16), mask=(i[:, None] < m) & (j[None, :] < n))

@triton.jit
def histogram(bins, src, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + at, mask=at < n, other=0)
    tl.atomic_add(bins + (v & 255), 1, mask=at < n, sem='relaxed')

@triton.jit
def scan_sort(dst, src, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(src + at)
    tl.store(dst + at, tl.cumsum(x, 0))
    tl.store(dst + BLOCK + at, tl.sort(x))

@triton.jit
def dropout(dst, src, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    x = tl.load(src + at, mask=at < n)
    tl.store(dst + at, tl.where(keep, x / (1 - p), 0.0), mask=at < n)

@triton.jit
def attention(q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + i[:, None] * D + d[None, :])
    top = tl.full((M,), -float('inf'), tl.float32)
    norm = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for s in range(0, n, N):
        j = s + tl.arange(0, N)
        y = tl.load(k + j[None, :] * D + d[:, None])
        w = tl.dot(x, y) * scale
        new = tl.maximum(top, tl.max(w, 1))
        w = tl.exp2(w - new[:, None])
        f = tl.exp2(top - new)
        norm = norm * f + tl.sum(w, 1)
        acc = acc * f[:, None]
        acc = tl.dot(w.to(tl.float16), tl.load(v + j[:, None] * D + d[None, :]), acc)
        top = new
    tl.store(o + i[:, None] * D + d[None, :], (acc / norm[:, None]).to(tl.float16))

@triton.jit
def fp8_scale(dst, src, s, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(src + at, mask=at < n, other=0.0) * s
    tl.store(dst + at, x.to(tl.float8e4nv), mask=at < n)

kernels = [
 (softmax, dict(dst='*fp32', src='*fp32', stride='i32', n='i32', BLOCK='constexpr'), dict(BLOCK=1024)),
 (matmul, dict(a='*fp16', b='*fp16', c='*fp16', m='i32', n='i32', k='i32', sa='i32', sb='i32', sc='i32', M='constexpr', N='constexpr', K='constexpr'), dict(M=128, N=128, K=64)),
 (histogram, dict(bins='*i32', src='*i32', n='i32', BLOCK='constexpr'), dict(BLOCK=512)),
 (scan_sort, dict(dst='*i32', src='*i32', BLOCK='constexpr'), dict(BLOCK=256)),
 (dropout, dict(dst='*fp32', src='*fp32', n='i32', p='fp32', seed='i32', BLOCK='constexpr'), dict(BLOCK=1024)),
 (attention, dict(q='*fp16', k='*fp16', v='*fp16', o='*fp16', n='i32', scale='fp32', M='constexpr', N='constexpr', D='constexpr'), dict(M=64, N=64, D=64)),
 (fp8_scale, dict(dst='*fp8e4nv', src='*fp16', s='fp32', n='i32', BLOCK='constexpr'), dict(BLOCK=1024)),
]
for cc in (75, 80, 90, 100):
    for fn, sig, const in kernels:
        if fn is fp8_scale and cc < 90:
            continue  # no such type there
        source = ASTSource(fn=fn, signature=sig, constexprs=const)
        made = triton.compile(source, target=GPUTarget('cuda', cc, 32), options={'num_warps': 4, 'num_stages': 3})
        with open(f'{out}/{fn.__name__}_sm{cc}.ptx', 'w') as file:
            file.write(made.asm['ptx'])
