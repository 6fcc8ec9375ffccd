"""One kernel of matrix products a frame, float16: a product of 4096 x 4096 matrices written in Triton, or PyTorch's flex_attention
of 4096 tokens (--attention, made for --compile)."""
from timing import argument_parser, import_torch, serve

SIZE = 4096
ROWS, COLUMNS, DEPTH = 128, 256, 64  # per block; on a Hopper card these are wgmma instructions
HEADS, HEAD = 16, 128


def product(torch):
    import triton
    import triton.language as tl

    @triton.jit
    def multiply(a, b, c, size: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr):
        # Blocks of eight rows of blocks one after the other: what they read stays in the L2.
        group = tl.program_id(0) // (8 * (size // columns))
        within = tl.program_id(0) % (8 * (size // columns))
        i = (group * 8 + within % 8) * rows + tl.arange(0, rows)
        j = within // 8 * columns + tl.arange(0, columns)
        k = tl.arange(0, depth)
        from_a = a + i[:, None] * size + k[None, :]
        from_b = b + k[:, None] * size + j[None, :]
        total = tl.zeros((rows, columns), tl.float32)
        for _ in range(0, size, depth):
            total = tl.dot(tl.load(from_a), tl.load(from_b), total)
            from_a += depth
            from_b += depth * size
        tl.store(c + i[:, None] * size + j[None, :], total.to(tl.float16))

    class Product(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weights", (torch.randn(SIZE, SIZE) * SIZE ** -0.5).half())
            self.register_buffer("result", torch.zeros(SIZE, SIZE).half())

        def forward(self, x):
            multiply[((SIZE // ROWS) * (SIZE // COLUMNS),)](x, self.weights, self.result, SIZE, ROWS, COLUMNS, DEPTH,
                                                            num_warps=8, num_stages=3)
            return self.result

    return Product(), torch.randn(SIZE, SIZE).half()


def attention(torch):
    from torch.nn.attention.flex_attention import flex_attention

    class Attention(torch.nn.Module):
        def forward(self, x):
            query, key, value = x.unbind(0)
            return flex_attention(query, key, value)

    return Attention(), torch.randn(3, 1, HEADS, SIZE, HEAD).half()


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--attention", action="store_true", help="flex_attention, not a product")
    arguments = parser.parse_args()
    torch = import_torch()
    network, frame = attention(torch) if arguments.attention else product(torch)
    serve(torch, network, frame, arguments)


if __name__ == "__main__":
    main()
