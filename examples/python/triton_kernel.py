#!/usr/bin/env python3
"""A kernel in Triton, in the colours of a tenant: y = 2 x + 1, checked.

    PYTHONPATH=python demarc exec --tenant a -- python3 examples/python/triton_kernel.py
"""
import sys

import demarc.torch


def main() -> int:
    try:
        demarc.torch.enable()
    except demarc.torch.Error as error:
        print(f"triton_kernel.py: {error}", file=sys.stderr)
        return error.code
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def scale(x, y, n, block: tl.constexpr):
        i = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(y + i, tl.load(x + i, mask=i < n) * 2 + 1, mask=i < n)

    n = 1 << 20
    x = torch.arange(n, dtype=torch.float32)
    y = torch.empty(n, device="cuda")
    scale[(triton.cdiv(n, 1024),)](x.cuda(), y, n, block=1024)
    right = torch.equal(y.cpu(), x * 2 + 1)
    print(demarc.torch.report())
    right = right and torch.equal((y + 1).cpu(), x * 2 + 2)  # an operator of PyTorch's: Inductor compiles it
    print("right" if right else "wrong")
    return 0 if right else 3


if __name__ == "__main__":
    sys.exit(main())
