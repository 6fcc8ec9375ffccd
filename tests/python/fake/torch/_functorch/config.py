"""torch/_functorch/config.py of PyTorch 2.11: whether AOTAutograd keeps its graphs."""
enable_autograd_cache = True
