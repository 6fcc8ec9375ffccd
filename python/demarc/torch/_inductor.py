"""Settings that leave Inductor no kernels of machine code, and data to try its kernels with that needs none."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .._errors import Error
from ._later import when_imported

# Of torch/_inductor/config.py of PyTorch 2.11.
SETTINGS: dict[str, Any] = {
    "max_autotune_gemm": True,  # products have Triton's kernels only where several are tried
    "max_autotune_gemm_backends": "TRITON",  # not ATEN, which is cuBLAS, nor CUTLASS
    "max_autotune_conv_backends": "TRITON",  # not ATEN, which is cuDNN
    "autotune_fallback_to_aten": False,
    "autotune_in_subproc": False,  # its processes would have a lease, but not these settings
    "pipeline_max_autotune_gemm": False,  # so would its
    "shape_padding": False,  # tries cuBLAS with data made on the card
    "joint_graph_constant_folding": False,  # runs operators on the card to see what they give
    "cpp_wrapper": False,  # report() reads the Python that Inductor writes
    "fx_graph_remote_cache": False,  # would bring machine code of programs without a lease
}


def _apply(config: ModuleType) -> None:
    for name in SETTINGS:
        if not hasattr(config, name):
            raise Error(f"this PyTorch has no torch._inductor.config.{name}; 2.11 is what was tried", 2)
    for name, value in SETTINGS.items():
        setattr(config, name, value)


def _keep_no_graphs(config: ModuleType) -> None:
    """Switches AOTAutograd's cache off: PyTorch 2.11 may take a graph out of it that was made for another number or offset."""
    if not hasattr(config, "enable_autograd_cache"):
        raise Error("this PyTorch has no torch._functorch.config.enable_autograd_cache; 2.11 is what was tried", 2)
    config.enable_autograd_cache = False


def _make_data_on_the_host(testing: ModuleType) -> None:
    """Replaces torch._dynamo.testing.rand_strided, by which Inductor makes what it tries kernels with.

    Its random numbers come from a kernel of ATen where the tensor is on the card. Here they are made on the host and
    copied. Same arguments: sizes and strides in elements, a dtype, a device, elements more than these need.
    """
    original = getattr(testing, "rand_strided", None)
    if original is None:
        raise Error("this PyTorch has no torch._dynamo.testing.rand_strided; 2.11 is what was tried", 2)

    def rand_strided(size: Any, stride: Any, dtype: Any = None, device: Any = "cpu", extra_size: int = 0) -> Any:
        import torch
        kind = torch.float32 if dtype is None else dtype
        made = original(size, stride, kind, "cpu", extra_size)
        if torch.device(device).type == "cpu":
            return made
        # The whole storage is copied, so that what lies between the elements and behind them is there too.
        room = made.untyped_storage().nbytes() // made.element_size()
        return torch.as_strided(torch.as_strided(made, (room,), (1,)).to(device), size, stride)

    for module in list(sys.modules.values()):  # its own, and those that took it by name before
        if getattr(module, "__dict__", {}).get("rand_strided") is original:
            module.rand_strided = rand_strided  # type: ignore[attr-defined]


def install() -> None:
    when_imported("torch._inductor.config", _apply)
    when_imported("torch._functorch.config", _keep_no_graphs)
    when_imported("torch._dynamo.testing", _make_data_on_the_host)
    import torch
    # Attention is then made of products and a softmax, which Inductor compiles.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    # Normalisation and layers of transformers are made of operators, not of calls of cuDNN and of one kernel each.
    torch.backends.cudnn.enabled = False
    torch.backends.mha.set_fastpath_enabled(False)
