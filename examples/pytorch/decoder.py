"""A decoder of 8 layers, 1024 wide, random weights, float16: one token a step, with a cache of 2048 keys and values, or a prompt."""
from timing import argument_parser, import_torch, serve

LAYERS, WIDTH, HEADS, TOKENS, WORDS = 8, 1024, 16, 2048, 8192
PROMPT = 1024  # tokens
HEAD = WIDTH // HEADS


def normed(torch, x, scale):
    y = x.float()
    return (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)).half() * scale


def rotated(torch, x, cosines, sines):
    first, second = x[..., : HEAD // 2].float(), x[..., HEAD // 2:].float()
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1).half()


def decoder(torch, prefill):
    functional = torch.nn.functional

    def weights(out, width):
        return torch.nn.Parameter(torch.randn(out, width).mul(width ** -0.5).half(), requires_grad=False)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = torch.nn.Parameter(torch.ones(2, WIDTH).half(), requires_grad=False)
            self.queries_keys_values, self.out = weights(3 * WIDTH, WIDTH), weights(WIDTH, WIDTH)
            self.gate, self.up, self.down = weights(4 * WIDTH, WIDTH), weights(4 * WIDTH, WIDTH), weights(WIDTH, 4 * WIDTH)
            self.register_buffer("keys", torch.zeros(HEADS, TOKENS, HEAD).half())
            self.register_buffer("values", torch.zeros(HEADS, TOKENS, HEAD).half())

        def forward(self, x, at, cosines, sines, places):
            both = functional.linear(normed(torch, x, self.scales[0]), self.queries_keys_values)
            query, key, value = both.view(3, HEADS, 1, HEAD).unbind(0)
            self.keys.index_copy_(1, at, rotated(torch, key, cosines, sines))
            self.values.index_copy_(1, at, value)
            scores = (rotated(torch, query, cosines, sines).float() * self.keys.float()).sum(-1) * HEAD ** -0.5
            shares = torch.softmax(torch.where(places <= at, scores, float("-inf")), -1)
            seen = (shares[..., None] * self.values.float()).sum(1).half().view(1, WIDTH)
            x = x + functional.linear(seen, self.out)
            return self.widened(x)

        def widened(self, x):
            y = normed(torch, x, self.scales[1])
            wide = functional.silu(functional.linear(y, self.gate)) * functional.linear(y, self.up)
            return x + functional.linear(wide, self.down)

        def read(self, x, cosines, sines, hidden):
            both = functional.linear(normed(torch, x, self.scales[0]), self.queries_keys_values)
            query, key, value = both.view(PROMPT, 3, HEADS, HEAD).permute(1, 2, 0, 3).unbind(0)
            query, key = rotated(torch, query, cosines, sines), rotated(torch, key, cosines, sines)
            scores = torch.where(hidden, float("-inf"), (query @ key.transpose(1, 2)).float() * HEAD ** -0.5)
            seen = (torch.softmax(scores, -1).half() @ value).transpose(0, 1).reshape(PROMPT, WIDTH)
            return self.widened(x + functional.linear(seen, self.out))

    class Decoder(torch.nn.Module):
        """Takes a token and where it stands, each an int64 of one element, and leaves there what comes next."""

        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Layer() for _ in range(LAYERS)])
            self.words, self.head = weights(WORDS, WIDTH), weights(WORDS, WIDTH)
            angles = torch.arange(TOKENS)[:, None] * (10000.0 ** (-torch.arange(HEAD // 2) / (HEAD // 2)))[None]
            self.register_buffer("cosines", angles.cos())
            self.register_buffer("sines", angles.sin())
            self.register_buffer("places", torch.arange(TOKENS)[None])
            self.register_buffer("at", torch.zeros(1, dtype=torch.int64))

        def forward(self, token):
            x = self.words[token]
            for layer in self.layers:
                x = layer(x, self.at, self.cosines[self.at], self.sines[self.at], self.places)
            token.copy_(functional.linear(x, self.head).argmax(-1))
            self.at.copy_((self.at + 1) % TOKENS)
            return x

    class Prompt(Decoder):
        """Takes the tokens of a prompt, all at once, and gives what the last of them leads to."""

        def forward(self, tokens):
            x = self.words[tokens]
            places = self.places[0, :PROMPT]
            for layer in self.layers:
                x = layer.read(x, self.cosines[:PROMPT], self.sines[:PROMPT], places[None] > places[:, None])
            return functional.linear(x[-1:], self.head)

    return Prompt if prefill else Decoder


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--prefill", action="store_true", help=f"read prompts of {PROMPT} tokens instead of writing one token a step")
    arguments = parser.parse_args()
    torch = import_torch()
    tokens = torch.arange(PROMPT) % WORDS if arguments.prefill else torch.zeros(1, dtype=torch.int64)
    serve(torch, decoder(torch, arguments.prefill)(), tokens, arguments)


if __name__ == "__main__":
    main()
