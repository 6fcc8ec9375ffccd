"""torch/_inductor/config.py of PyTorch 2.11, those of its settings that demarc.torch changes, with their values there."""
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
max_autotune_conv_backends = "ATEN,TRITON"
autotune_fallback_to_aten = False
autotune_in_subproc = False
pipeline_max_autotune_gemm = True
shape_padding = True
joint_graph_constant_folding = True
cpp_wrapper = False
fx_graph_remote_cache = None
