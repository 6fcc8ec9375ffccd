"""torch/_dynamo/testing.py of PyTorch 2.11: rand_strided, whose random numbers are made where the tensor lies."""
import torch


def rand_strided(size, stride, dtype=torch.float32, device="cpu", extra_size=0):
    if torch.device(device).type != "cpu":
        torch.kernel_of_aten()
    needed = extra_size
    if all(s > 0 for s in size):
        needed += sum((n - 1) * step for n, step in zip(size, stride)) + 1
    return torch.Tensor([float(i) for i in range(needed)], size, stride, dtype)
