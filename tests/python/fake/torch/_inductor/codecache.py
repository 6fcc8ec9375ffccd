"""torch/_inductor/codecache.py of PyTorch 2.11: the modules of the code that Inductor wrote and loaded."""


class PyCodeCache:
    modules = []
