"""PyTorch, eager: what models are made of. The number of kernels is what a profiler counts (counted.py)."""
import torch
import torch.nn.functional as F

def main():
    torch.manual_seed(1)
    done = []
    def way(name, f):
        try: f(); torch.cuda.synchronize(); done.append(name)
        except Exception as e: print(f"{name}: {type(e).__name__}: {str(e).splitlines()[0][:160] if str(e) else ''}")
    a = torch.randn(1024, 1024, device="cuda")
    h = a.half(); b = a.bfloat16(); d = a[:256, :256].double()
    way("matmul fp32", lambda: [a @ a for _ in range(10)])
    way("matmul fp16", lambda: [h @ h for _ in range(10)])
    way("matmul bf16 with bias", lambda: F.linear(b, b, b[0]))
    way("matmul of a vector", lambda: [a @ a[0] for _ in range(5)])
    way("matmul fp64", lambda: d @ d)
    way("bmm", lambda: torch.bmm(h.view(16, 256, 256), h.view(16, 256, 256)))
    way("skinny matmul (split k)", lambda: a.reshape(8, -1) @ a.reshape(-1, 8))
    way("tf32", lambda: (setattr(torch.backends.cuda.matmul, "allow_tf32", True), a @ a))
    way("convolution", lambda: F.conv2d(torch.randn(8, 16, 32, 32, device="cuda"), torch.randn(32, 16, 3, 3, device="cuda")))
    way("attention", lambda: F.scaled_dot_product_attention(*[torch.randn(2, 8, 128, 64, device="cuda", dtype=torch.half) for _ in range(3)], is_causal=True))
    way("softmax, norms", lambda: F.layer_norm(a.softmax(-1), (1024,)))
    way("sort, topk, cumsum", lambda: (a.sort(), a.topk(8), a.cumsum(0)))
    way("nonzero, masks", lambda: (a[a > 0], (a > 0).nonzero()))
    way("index, embedding", lambda: F.embedding(torch.randint(0, 1024, (64,), device="cuda"), a))
    way("random, dropout", lambda: F.dropout(torch.randn(1 << 16, device="cuda"), 0.5))
    way("zeros", lambda: [torch.zeros(1 << 20, device="cuda") for _ in range(5)])
    way("fft", lambda: torch.fft.rfft2(a))
    way("solve", lambda: torch.linalg.solve(d + 64 * torch.eye(256, device="cuda", dtype=torch.double), d))
    def train():
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).cuda()
        for maker in (lambda p: torch.optim.SGD(p, 0.1), lambda p: torch.optim.Adam(p), lambda p: torch.optim.AdamW(p, fused=True)):
            opt = maker(model.parameters())
            for _ in range(3):
                opt.zero_grad(); model(a[:64, :256]).square().mean().backward(); opt.step()
    way("training", train)
    def amp():
        model = torch.nn.Linear(256, 256).cuda(); scaler = torch.amp.GradScaler("cuda"); opt = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            opt.zero_grad()
            with torch.autocast("cuda"): loss = model(a[:64, :256]).float().mean()
            scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
    way("autocast", amp)
    def copies():
        pinned = torch.empty(1 << 20).pin_memory(); s = torch.cuda.Stream()
        with torch.cuda.stream(s):
            c = pinned.to("cuda", non_blocking=True); c.mul_(2); pinned.copy_(c, non_blocking=True)
        s.synchronize()
    way("pinned copies", copies)
    def graph_of_a_model():
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).cuda().half()
        x = torch.randn(32, 256, device="cuda", dtype=torch.half)
        with torch.inference_mode():
            s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(s):
                for _ in range(3): model(x)
            torch.cuda.current_stream().wait_stream(s)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g): y = model(x); z = F.dropout(y, 0.5)
            for _ in range(7): g.replay()
    way("graph of a model, with random numbers", graph_of_a_model)
    print("ways:", ", ".join(done))
if __name__ == "__main__": main()
