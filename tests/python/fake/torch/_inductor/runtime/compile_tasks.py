"""torch/_inductor/runtime/compile_tasks.py of PyTorch 2.11: what a worker does with a kernel."""


def _worker_compile_triton(load_kernel, extra_env, extra_config):
    from triton.compiler import compile
    return compile(*load_kernel), extra_env, extra_config
