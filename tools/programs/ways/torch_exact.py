"""PyTorch, eager: fills and adds alone, in the default stream, a side stream, threads, autograd's thread and a captured graph."""
import json, threading
import torch

def main():
    n = 1 << 16
    x = torch.empty(n, device="cuda"); x.fill_(1.0)                        # 1
    for _ in range(100): x.add_(1.0)                                       # 100
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(50): x.add_(1.0)                                    # stream 50
    side.synchronize()
    cells = [torch.empty(n, device="cuda") for _ in range(4)]
    def work(cell):
        own = torch.cuda.Stream()
        with torch.cuda.stream(own):
            cell.fill_(0.5)                                                # 1 each
            for _ in range(9): cell.add_(1.0)                              # 9 each
        own.synchronize()
    threads = [threading.Thread(target=work, args=(c,)) for c in cells]
    for t in threads: t.start()
    for t in threads: t.join()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10): x.add_(1.0)
    for _ in range(7): graph.replay()
    torch.cuda.synchronize()
    right = bool((x.cpu() == 1 + 100 + 50 + 70).all()) and all(bool((c.cpu() == 9.5).all()) for c in cells)
    print("right" if right else "WRONG")
    # torch.cuda.graph also fills the seed and the offset of the generator at the capture (2 fills on the capture's stream), in most versions
    print(json.dumps({"default stream": 101, "stream": 90, "graph": 70, "graphs": 7, "may_be_more": {"stream": 2, "default stream": 2}}))
if __name__ == "__main__": main()
