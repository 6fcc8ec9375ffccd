"""A language model's server in one file: the decoder of decoder.py with continuous batching, under an open load.

Each step takes one token of each request under way, of its prompt or its answer. A request joins at the next step if a slot
is free, and leaves when its answer is whole. Requests arrive at random times (a Poisson process of the given rate) and do
not wait for answers. Prints one line of JSON: tokens per second, times between tokens and to the first token in ms, and
the SHA-256 of all answers. Without --rate it times steps on request, as decoder.py does.
"""
import hashlib
import json
import pathlib
import random
import sys
import time

from decoder import HEAD, HEADS, TOKENS, WIDTH, WORDS, decoder, normed, rotated
from timing import argument_parser, compiled, import_torch, say, say_ready, serve

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "serving"))
from load import Answer, figures, number  # noqa: E402


def batch(torch, slots):
    """The decoder for `slots` sequences at once, each at a place of its own."""
    functional = torch.nn.functional

    class Batch(decoder(torch, False)):
        """Takes a token and a place for each slot, int64 (slots) each in one tensor (2, slots), and leaves there what comes next."""

        def __init__(self):
            super().__init__()
            for layer in self.layers:
                layer.keys = torch.zeros(slots, HEADS, TOKENS, HEAD).half()
                layer.values = torch.zeros(slots, HEADS, TOKENS, HEAD).half()
            self.register_buffer("slots", torch.arange(slots))

        def seen(self, layer, x, at, cosines, sines):
            both = functional.linear(normed(torch, x, layer.scales[0]), layer.queries_keys_values)
            query, key, value = both.view(slots, 3, HEADS, HEAD).unbind(1)
            layer.keys[self.slots, :, at] = rotated(torch, key, cosines, sines)
            layer.values[self.slots, :, at] = value
            scores = (rotated(torch, query, cosines, sines)[:, :, None].float() * layer.keys.float()).sum(-1) * HEAD ** -0.5
            shares = torch.softmax(torch.where(self.places[None] <= at[:, None, None], scores, float("-inf")), -1)
            return (shares[..., None] * layer.values.float()).sum(2).half().view(slots, WIDTH)

        def forward(self, state):
            tokens, at = state[0], state[1]
            x = self.words[tokens]
            cosines, sines = self.cosines[at][:, None], self.sines[at][:, None]
            for layer in self.layers:
                x = layer.widened(x + functional.linear(self.seen(layer, x, at, cosines, sines), layer.out))
            state.copy_(torch.stack([functional.linear(x, self.head).argmax(-1), (at + 1) % TOKENS]))
            return x

    return Batch()


class Request:
    """One request: the tokens of its prompt that are not read yet, those of its answer, and their times."""

    def __init__(self, chosen, due, prompt):
        self.prompt = [chosen.randrange(WORDS) for _ in range(prompt)]
        self.read, self.tokens, self.answer = 0, [], Answer(due)


def requests(arguments):
    """All requests, in the order in which they are due."""
    chosen, due = random.Random(arguments.seed), 0.0
    for _ in range(arguments.requests):
        due += chosen.expovariate(arguments.rate)
        yield Request(chosen, due, arguments.prompt)


def answer(step, waiting, slots, output):
    """Runs steps until all requests have their answers. `step`: takes tokens and places of all slots, gives the tokens that follow."""
    waiting, under_way, done, start = list(waiting), [None] * slots, [], time.perf_counter()
    while waiting or any(under_way):
        now = time.perf_counter() - start
        for slot in range(slots):
            if under_way[slot] is None and waiting and waiting[0].answer.due <= now:
                under_way[slot] = waiting.pop(0)
        if not any(under_way):
            time.sleep(max(0.0, waiting[0].answer.due - now))
            continue
        given = [(request.prompt + request.tokens)[request.read] if request else 0 for request in under_way]
        following = step(given, [request.read if request else 0 for request in under_way])
        now = time.perf_counter() - start
        for slot, request in enumerate(under_way):
            if request is None:
                continue
            request.read += 1
            if request.read < len(request.prompt):
                continue
            request.tokens.append(following[slot])
            request.answer.tokens.append(now)
            if len(request.tokens) == output:
                request.answer.made = output
                done.append(request)
                under_way[slot] = None
    return done


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--rate", type=number(float, 0.001, or_zero=True), default=0, help="requests per second; 0: no requests, steps on request (0)")
    parser.add_argument("--requests", type=number(int, 1), default=24, help="with --rate (24)")
    parser.add_argument("--prompt", type=number(int, 1), default=64, help="tokens of a prompt (64)")
    parser.add_argument("--output", type=number(int, 1), default=128, help="tokens of an answer (128)")
    parser.add_argument("--slots", type=number(int, 1), default=8, help="requests under way at most (8)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.prompt + arguments.output > TOKENS:
        parser.error(f"--prompt {arguments.prompt} and --output {arguments.output}: at most {TOKENS} tokens together were expected")
    torch = import_torch()
    network, state = batch(torch, arguments.slots), torch.zeros(2, arguments.slots, dtype=torch.int64)
    if not arguments.rate:
        serve(torch, network, state, arguments)
        return
    network, state = network.eval().cuda(), state.cuda()
    if arguments.compile:
        network = compiled(torch, network, arguments.picks, arguments.note_picks)
    given = torch.zeros_like(state, device="cpu")
    with torch.inference_mode():
        for _ in range(3):
            network(state)
        run = lambda: network(state)
        if arguments.graph:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                network(state)
            run = graph.replay

        def step(tokens, places):
            given[0], given[1] = torch.tensor(tokens), torch.tensor(places)
            state.copy_(given)
            run()
            return state[0].tolist()

        say_ready()
        while True:
            done = answer(step, requests(arguments), arguments.slots, arguments.output)
            tokens = [request.tokens for request in sorted(done, key=lambda request: request.answer.due)]
            say(json.dumps(figures([request.answer for request in done])
                           | {"sha256": hashlib.sha256(json.dumps(tokens).encode()).hexdigest()}))
            if not arguments.endless:
                return


if __name__ == "__main__":
    main()
