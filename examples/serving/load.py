"""Sends requests to a llama.cpp server at random times and measures how it answers.

    python3 load.py http://127.0.0.1:8080 --rate 2 --requests 100

Arrivals are a Poisson process of the given rate and do not wait for answers (an open load), or
`--at-once` requests are always under way (a closed load). Prompts are random tokens of one length,
so no prompt is found in the server's cache. All times are those of this client. Exit code 0;
1: wrong arguments; 3: the server did not answer as it was asked, or the file cannot be written.
"""

import argparse
import asyncio
import json
import os
import random
import time
import urllib.parse
from dataclasses import asdict, dataclass, field

FIRST_TOKEN, TOKENS = 300, 30000  # ordinary tokens in every vocabulary of weights.py
SAMPLES_OF_A_P99 = 1000
SAMPLES_OF_A_MEDIAN = 50


@dataclass(frozen=True)
class Load:
    """What is asked for. `rate`: requests per second, or 0 for a closed load of `at_once` requests. `requests`: 0 for no end."""

    rate: float
    at_once: int
    requests: int
    prompt: int
    output: int
    seed: int


@dataclass
class Answer:
    """Times of one request in seconds since the start: when it was due, and when tokens came. The server says how many it made;
    it sends fewer where the bytes of several tokens make one character."""

    due: float
    tokens: list = field(default_factory=list)
    made: int = 0


class Arguments(argparse.ArgumentParser):
    """A command line whose errors end with exit code 1, as those of demarc do."""

    def error(self, message):
        self.exit(1, f"{self.prog}: {message}\n")


def number(kind, least, or_zero=False):
    """Reads a number of a command line that is at least `least`, or 0 where that has a meaning."""

    def read(text):
        value = kind(text)
        if not (least <= value < float("inf")) and not (or_zero and value == 0):
            raise argparse.ArgumentTypeError(f"{text}: at least {least}{' or 0' if or_zero else ''} was expected")
        return value

    read.__name__ = "number"
    return read


def address(text):
    """Reads the address of a server."""
    found = urllib.parse.urlsplit(text)
    if found.scheme != "http" or not found.hostname or not found.port:
        raise argparse.ArgumentTypeError(f"'{text}': an address such as http://127.0.0.1:8080 was expected")
    return text


class Refused(Exception):
    """The server's answer is not the stream that was asked for."""


async def ask(url, load, prompt, start, due):
    """Sends one request and reads its tokens as they come."""
    answer = Answer(due)
    address = urllib.parse.urlsplit(url)
    body = json.dumps({"prompt": prompt, "n_predict": load.output, "temperature": 0, "ignore_eos": True, "stream": True,
                       "return_tokens": True, "cache_prompt": False}).encode()
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 20)
    try:
        writer.write(b"POST /completion HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close"
                     b"\r\n\r\n%s" % (address.netloc.encode(), len(body), body))
        status = (await reader.readline()).decode().strip()
        if " 200 " not in f"{status} ":
            raise Refused(f"{url}: {status}")
        while line := await reader.readline():
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            answer.tokens += [time.perf_counter() - start] * len(event.get("tokens") or [])
            if event.get("stop"):
                answer.made = event.get("tokens_predicted", 0)
                break
    finally:
        writer.close()
    if answer.made != load.output or not answer.tokens:
        raise Refused(f"{url}: {answer.made} tokens were made, and {load.output} were asked for")
    return answer


async def run(url, load):
    """The answers to all requests, in the order in which the requests were due."""
    chosen, start, due, under_way = random.Random(load.seed), time.perf_counter(), 0.0, []
    while load.requests == 0 or len(under_way) < load.requests:
        prompt = [FIRST_TOKEN + chosen.randrange(TOKENS - FIRST_TOKEN) for _ in range(load.prompt)]
        if load.rate > 0:
            due += chosen.expovariate(load.rate)
            await asyncio.sleep(max(0.0, due - (time.perf_counter() - start)))
        else:
            running = [task for task in under_way if not task.done()]
            if len(running) >= load.at_once:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            due = time.perf_counter() - start
        under_way.append(asyncio.create_task(ask(url, load, prompt, start, due)))
        if load.requests == 0:  # without an end no answer is kept, and one that failed ends the load
            for task in under_way:
                if task.done():
                    task.result()
            under_way = [task for task in under_way if not task.done()]
    return await asyncio.gather(*under_way)


def rank(samples, share):
    """The sample at this share of the sorted ones (nearest rank). None: there are too few to say."""
    if not samples or (share > 0.9 and len(samples) < SAMPLES_OF_A_P99):
        return None
    return sorted(samples)[min(len(samples) - 1, int(share * len(samples)))]


def figures(answers):
    """Tokens per second of all requests together, and in ms the times between tokens and to the first token."""
    gaps = [1e3 * (b - a) for answer in answers for a, b in zip(answer.tokens, answer.tokens[1:])]
    first = [1e3 * (answer.tokens[0] - answer.due) for answer in answers]
    tokens = sum(answer.made for answer in answers)
    seconds = max(answer.tokens[-1] for answer in answers) - min(answer.due for answer in answers)
    return {"requests": len(answers), "tokens_per_s": tokens / seconds, "gaps": len(gaps),
            "gap_ms_p50": rank(gaps, 0.5), "gap_ms_p99": rank(gaps, 0.99), "first_ms_p50": rank(first, 0.5), "first_ms_p99": rank(first, 0.99)}


def steady_gaps(answers):
    """Times between tokens in ms while the server reads no other prompt, by the number of requests that make tokens."""
    found = {}
    for answer in answers:
        others = [other for other in answers if other is not answer]
        for a, b in zip(answer.tokens, answer.tokens[1:]):
            if any(other.due < b and other.tokens[0] > a for other in others):
                continue
            making = 1 + sum(other.tokens[0] <= a and other.tokens[-1] >= b for other in others)
            found.setdefault(making, []).append(1e3 * (b - a))
    return found


def at_equal_load(answers, alone):
    """How many times longer a gap is than in the answers `alone` with as many requests making tokens: p50 and p99. None: too few.

    A server that is slower has more requests under way, which makes it slower again. Here each gap is divided by the median of
    `alone` for its number of requests, and the quotients of both are compared.
    """
    medians = {number: rank(gaps, 0.5) for number, gaps in steady_gaps(alone).items() if len(gaps) >= SAMPLES_OF_A_MEDIAN}
    quotients = [[gap / medians[number] for number, gaps in steady_gaps(one).items() if number in medians for gap in gaps]
                 for one in (answers, alone)]
    ranks = [[rank(one, share) for one in quotients] for share in (0.5, 0.99)]
    return [None if None in pair else pair[0] / pair[1] for pair in ranks]


def write(path, value):
    """Writes JSON, whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(f"{path}.new", path)


def main():
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", type=address, help="address of the server, such as http://127.0.0.1:8080")
    parser.add_argument("--rate", type=number(float, 0.001, or_zero=True), default=0, help="requests per second; 0: a closed load (default)")
    parser.add_argument("--at-once", type=number(int, 1), default=4, help="requests under way in a closed load (default: 4)")
    parser.add_argument("--requests", type=number(int, 1, or_zero=True), default=100, help="0: without end (default: 100)")
    parser.add_argument("--prompt", type=number(int, 1), default=512, help="tokens of a prompt (default: 512)")
    parser.add_argument("--output", type=number(int, 1), default=128, help="tokens of an answer (default: 128)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write the figures and all times to FILE")
    arguments = parser.parse_args()
    load = Load(arguments.rate, arguments.at_once, arguments.requests, arguments.prompt, arguments.output, arguments.seed)
    try:
        answers = asyncio.run(run(arguments.url, load))
        found = figures(answers)
        if arguments.json:
            write(arguments.json, {"url": arguments.url, "load": asdict(load), "figures": found, "answers": [asdict(answer) for answer in answers]})
    except (Refused, OSError, json.JSONDecodeError) as error:
        parser.exit(3, f"load.py: {error}\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
