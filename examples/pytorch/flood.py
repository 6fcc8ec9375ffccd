"""A neighbour that queues work into four streams without end: products of matrices, or adds, fills or copies of tensors."""
import argparse
import time

from timing import compiled, import_torch, say, say_ready


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["products", "adds", "fills", "copies"],
                        help="products of 8192 x 8192 matrices (compute-bound); the others go over tensors of 256 MiB")
    parser.add_argument("--streams", type=int, default=4, help="streams to queue into (4)")
    parser.add_argument("--compile", action="store_true", help="through torch.compile, with kernels of Triton's alone; not copies")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many (never)")
    arguments = parser.parse_args()
    if arguments.compile and arguments.kind == "copies":
        parser.error("--compile copies: the driver makes them")
    torch = import_torch()
    streams = [torch.cuda.Stream() for _ in range(arguments.streams)]

    def tensors():
        if arguments.kind == "products":
            return [torch.rand(8192, 8192, device="cuda") for _ in range(2)] + [torch.empty(8192, 8192, device="cuda")]
        return [torch.zeros(64 << 20, device="cuda") for _ in range(2)]

    owned = [tensors() for _ in streams]
    work = {"products": lambda a, b, c=None: torch.mm(a, b, out=c), "adds": lambda a, b: a.add_(1),
            "fills": lambda a, b: a.fill_(1), "copies": lambda a, b: a.copy_(b)}[arguments.kind]
    if arguments.compile:
        work = compiled(torch, work)
    torch.cuda.synchronize()
    with torch.inference_mode():
        for stream, mine in zip(streams, owned):
            with torch.cuda.stream(stream):
                work(*mine)
        torch.cuda.synchronize()
        say_ready()
        count, begin, told = 0, time.perf_counter(), 0.0
        while time.perf_counter() - begin < arguments.seconds:
            for stream, mine in zip(streams, owned):
                with torch.cuda.stream(stream):
                    work(*mine)
                count += 1
            if time.perf_counter() - told > 0.1:
                told = time.perf_counter()
                say(f"at {count}")


if __name__ == "__main__":
    main()
