"""CUDABackend.add_stages and CompiledKernel of Triton 3.6: the stages in their order, the hook after them, then the load.

`ptx` stands for what the stages before the last give.
"""
import types

from triton import knobs


def compile(name, ptx, ptx_options=None, enable_fp_fusion=True, last="cubin"):
    options = types.SimpleNamespace(ptx_options=ptx_options, enable_fp_fusion=enable_fp_fusion)
    stages = {"ptx": lambda src, metadata: ptx, last: lambda src, metadata: b"\x7fELF"}
    if knobs.runtime.add_stages_inspection_hook is not None:
        knobs.runtime.add_stages_inspection_hook(object(), stages, options, "triton", 90)
    module, metadata = None, {}
    for stage in stages.values():
        module = stage(module, metadata)
        metadata["name"] = name
    knobs.runtime.kernel_load_end_hook(object(), 1, name, {}, "hash")
    return module
