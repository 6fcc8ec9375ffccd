"""Takes rand_strided by name, as torch/_inductor/select_algorithm.py of PyTorch 2.11 does."""
from torch._dynamo.testing import rand_strided  # noqa: F401
