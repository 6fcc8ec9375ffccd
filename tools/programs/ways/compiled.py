"""torch.compile: a small model, plainly and with mode="reduce-overhead" (CUDA graphs). Run it once before it is counted: the first run also
measures configurations of kernels, and keeps what it chose in TORCHINDUCTOR_CACHE_DIR."""
import os
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

def main():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 64)).cuda().half()
    x = torch.randn(128, 256, device="cuda", dtype=torch.half)
    with torch.inference_mode():
        expected = model(x)
        plain = torch.compile(model); found = [plain(x) for _ in range(5)][-1]
        torch._dynamo.reset()
        graphs = torch.compile(model, mode="reduce-overhead"); again = [graphs(x).clone() for _ in range(10)][-1]
    torch._dynamo.reset()
    plain = torch.compile(model); plain(x).float().square().mean().backward()
    torch.cuda.synchronize()
    worst = max((found - expected).abs().max().item(), (again - expected).abs().max().item())
    print("right" if worst < 0.02 else f"WRONG by {worst}")
if __name__ == "__main__": main()
