#!/usr/bin/env python3
"""Two layers under torch.compile, in the colours of a tenant, beside the same on the host; then what report() says.

    PYTHONPATH=python demarc exec --tenant a -- python3 examples/python/compiled_model.py
"""
import sys

import demarc.torch


def main() -> int:
    try:
        demarc.torch.enable()
    except demarc.torch.Error as error:
        print(f"compiled_model.py: {error}", file=sys.stderr)
        return error.code
    import torch

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).half()
    x = torch.randn(128, 256).half()
    with torch.inference_mode():
        expected = model.float()(x.float())
        compiled = torch.compile(model.half().cuda())
        found = compiled(x.cuda()).cpu().float()
    print(demarc.torch.report())
    worst = (found - expected).abs().max().item()
    print(f"largest difference from the host: {worst:.4f}")
    return 0 if worst < 0.02 else 3


if __name__ == "__main__":
    sys.exit(main())
