"""Few kernels to try for a product outside of torch.compile.

Inductor tries some 20 of Triton's kernels for a product. In a tenant each is compiled and rewritten when it is loaded, which
takes 1 to 5 s, too long for an operator that a program calls at its start. Here the few are tried whose blocks are nearest
to what usually serves a product of these sizes.
"""
from __future__ import annotations

import functools
import math
import threading
from typing import Any

TRIED = 3


def _distance(blocks: dict[str, Any], m: int, n: int) -> float:
    """How far a kernel's blocks are from the wanted ones, in powers of two; then fewer stages come first."""
    large = 128 if min(m, n) >= 1024 else 64
    wanted = (("BLOCK_M", min(large, max(16, m))), ("BLOCK_N", min(large, max(16, n))), ("BLOCK_K", 64))
    return sum(abs(math.log2(blocks.get(name, 1) / size)) for name, size in wanted) + blocks.get("num_stages", 1) / 100


class _Thread(threading.local):
    """The operators that are being carried out in this thread, the outermost first."""

    def __init__(self) -> None:
        from torch._inductor.virtualized import V
        self.operators: set[Any] = set()
        V.set_choices_handler(_handler())


@functools.lru_cache(maxsize=None)
def _handler() -> Any:
    from torch._inductor.choices import InductorChoices
    from torch._inductor.virtualized import V

    class Few(InductorChoices):  # type: ignore[misc]
        def _finalize_template_configs(self, template_choices: Any, kernel_inputs: Any, *rest: Any, **named: Any) -> Any:
            found = super()._finalize_template_configs(template_choices, kernel_inputs, *rest, **named)
            if not operators():
                return found
            m, n, _ = kernel_inputs.mnk_hinted()
            return sorted(found, key=lambda choice: _distance(choice.params.to_kwargs(), m, n))[:TRIED]

        def get_conv_configs(self, device_type: Any = "cuda") -> Any:
            configurations = super().get_conv_configs(device_type)
            if not operators():
                return configurations

            def few(m: Any, n: Any, k: Any, **named: Any) -> Any:
                sizes = [V.graph.sizevars.size_hint(size, fallback=1024) for size in (m, n)]
                return sorted(configurations(m, n, k, **named),
                              key=lambda found: _distance(found.kwargs | {"num_stages": found.num_stages}, *sizes))[:TRIED]

            return few

    return Few()


@functools.lru_cache(maxsize=None)
def _threads() -> _Thread:
    return _Thread()


def operators() -> set[Any]:
    """The operators that this thread is carrying out. While there are some, Inductor tries TRIED kernels for a product."""
    return _threads().operators
