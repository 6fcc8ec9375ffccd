"""examples/serving: GGUF files of random weights, the load on a server, and the table of two servers in each way of sharing a GPU."""
import asyncio
import contextlib
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support import ROOT

SERVING = ROOT / "examples/serving"
sys.path.insert(0, str(SERVING))
import load  # noqa: E402
import weights  # noqa: E402


class Gguf:
    """What a GGUF file says, read by its description."""

    def __init__(self, data):
        self.data, self.at = data, 0
        magic, version, tensors, entries = self.take("<4sIQQ")
        assert (magic, version) == (b"GGUF", 3)
        self.entries = dict((self.text(), self.value(self.take("<I")[0])) for _ in range(entries))
        self.tensors = {}
        for _ in range(tensors):
            name, (dimensions,) = self.text(), self.take("<I")
            self.tensors[name] = (self.take(f"<{dimensions}Q"), *self.take("<IQ"))
        self.first = -(-self.at // 32) * 32

    def take(self, form):
        found = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def text(self):
        (size,) = self.take("<Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.take("<IQ")
            return [self.value(kind) for _ in range(count)]
        return self.take({4: "<I", 5: "<i", 6: "<f"}[kind])[0]


def half(data, at):
    return struct.unpack_from("<e", data, at)[0]


def decoded(number, block):
    """The weights of one block, by ggml's formulas."""
    if number == 1:
        return list(struct.unpack("<e", block))
    if number == 8:
        return [half(block, 0) * value for value in struct.unpack("<32b", block[2:])]
    if number == 12:
        scale, least, packed = half(block, 0), half(block, 2), block[4:16]
        pairs = [(packed[j] & 63, packed[j + 4] & 63) for j in range(4)]
        pairs += [(packed[j + 4] & 15 | packed[j - 4] >> 6 << 4, packed[j + 4] >> 4 | packed[j] >> 6 << 4) for j in range(4, 8)]
        return [scale * pairs[64 * i // 32 + high][0] * (block[16 + 32 * i + j] >> 4 * high & 15) - least * pairs[2 * i + high][1]
                for i in range(4) for high in (0, 1) for j in range(32)]
    scales = struct.unpack("<16b", block[192:208])
    return [half(block, 208) * scales[k // 16] * ((block[k // 128 * 64 + k % 64] >> 4 * (k % 128 // 64) & 15 |
            (block[128 + k // 128 * 32 + k % 32] >> 2 * (k % 128 // 32) & 3) << 4) - 32) for k in range(256)]


class Weights(unittest.TestCase):
    SMALL = weights.Model("qwen3", 2, 256, 512, 4, 2, 64, 300, 10000.0)

    def file(self, quantity, seed=1):
        with tempfile.TemporaryDirectory() as folder:
            size = weights.write(f"{folder}/w.gguf", self.SMALL, quantity, seed)
            data = Path(f"{folder}/w.gguf").read_bytes()
            self.assertEqual(os.listdir(folder), ["w.gguf"])
        self.assertEqual(size, len(data))
        return data

    def test_a_file_says_its_shape_and_holds_all_tensors(self):
        for quantity, numbers in {"f16": {0, 1}, "q8_0": {0, 8}, "q4_k_m": {0, 12, 14}}.items():
            data = self.file(quantity)
            found = Gguf(data)
            self.assertEqual(found.entries["general.architecture"], "qwen3")
            self.assertEqual((found.entries["qwen3.block_count"], found.entries["qwen3.attention.head_count_kv"]), (2, 2))
            self.assertEqual(len(set(found.entries["tokenizer.ggml.tokens"])), 300)
            self.assertNotIn(6, found.entries["tokenizer.ggml.token_type"], "no token is a part of a character")
            self.assertEqual(len(found.tensors), 3 + 2 * 11)
            self.assertEqual(found.tensors["blk.1.ffn_down.weight"][0], (512, 256))
            self.assertEqual({number for _, number, _ in found.tensors.values()}, numbers)
            forms = {form.number: form for form in (weights.F32, weights.F16, weights.Q8_0, weights.Q4_K, weights.Q6_K)}
            end = 0
            for shape, number, offset in found.tensors.values():
                self.assertEqual(offset, -(-end // 32) * 32)
                end = offset + math.prod(shape) // forms[number].weights * forms[number].bytes
            self.assertEqual(len(data), found.first + -(-end // 32) * 32)

    def test_weights_of_all_formats_have_one_mean_and_about_one_deviation(self):
        for form in (weights.F16, weights.Q8_0, weights.Q4_K, weights.Q6_K):
            data = weights.blocks(form, 20 * 256, random.Random(1))
            values = [value for at in range(0, len(data), form.bytes) for value in decoded(form.number, data[at:at + form.bytes])]
            self.assertEqual(len(values), 20 * 256)
            self.assertLess(abs(sum(values) / len(values)), 0.002, form)
            self.assertAlmostEqual(math.sqrt(sum(value * value for value in values) / len(values)), 0.02, delta=0.005, msg=form)

    def test_a_seed_decides_the_bytes(self):
        self.assertEqual(self.file("q8_0"), self.file("q8_0"))
        self.assertNotEqual(self.file("q8_0"), self.file("q8_0", seed=2))


class Answers(BaseHTTPRequestHandler):
    """A server of tokens: it makes as many as are asked for, or `made`, or says `status`."""

    made, status, under_way, most, prompts = None, 200, 0, 0, []

    def log_message(self, *_):
        pass

    def do_POST(self):
        cls = type(self)
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        cls.prompts.append(asked["prompt"])
        cls.under_way += 1
        cls.most = max(cls.most, cls.under_way)
        self.send_response(cls.status)
        self.end_headers()
        count = asked["n_predict"] if cls.made is None else cls.made
        with contextlib.suppress(ConnectionError):  # a load that was ended
            for token in range(count):
                time.sleep(0.001)
                self.say(tokens=[token], stop=False)
            cls.under_way -= 1
            self.say(tokens=[], stop=True, tokens_predicted=count)

    def say(self, **event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")


class Loads(unittest.TestCase):
    def setUp(self):
        self.handler = type("Handler", (Answers,), {"prompts": []})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def run_load(self, **changes):
        asked = {"rate": 0, "at_once": 3, "requests": 7, "prompt": 5, "output": 4, "seed": 1} | changes
        return asyncio.run(load.run(self.url, load.Load(**asked)))

    def test_a_closed_load_keeps_so_many_requests_under_way(self):
        answers = self.run_load()
        self.assertEqual([len(answer.tokens) for answer in answers], 7 * [4])
        self.assertLessEqual(self.handler.most, 3)
        self.assertEqual({len(prompt) for prompt in self.handler.prompts}, {5})
        self.assertEqual(len({tuple(prompt) for prompt in self.handler.prompts}), 7, "no prompt comes twice")

    def test_arrivals_of_an_open_load_follow_the_seed_and_do_not_wait(self):
        first = self.run_load(rate=500, output=40)
        self.assertGreater(self.handler.most, 1)
        self.assertEqual([answer.due for answer in first], [answer.due for answer in self.run_load(rate=500)])
        self.assertNotEqual(first[0].due, self.run_load(rate=500, seed=2)[0].due)

    def test_what_is_no_answer_is_refused(self):
        self.handler.made = 3
        with self.assertRaisesRegex(load.Refused, "3 tokens were made, and 4 were asked for"):
            self.run_load()
        self.handler.made, self.handler.status = None, 503
        with self.assertRaisesRegex(load.Refused, "503"):
            self.run_load()

    def test_figures_are_those_of_the_times_and_few_samples_have_no_p99(self):
        answers = [load.Answer(1.0, [1.1 + 0.01 * n for n in range(101)], 101), load.Answer(2.0, [2.3], 1)]
        found = load.figures(answers)
        self.assertEqual((found["requests"], found["gaps"]), (2, 100))
        self.assertAlmostEqual(found["gap_ms_p50"], 10)
        self.assertAlmostEqual(found["first_ms_p50"], 300)
        self.assertAlmostEqual(found["tokens_per_s"], 102 / 1.3)
        self.assertIsNone(found["gap_ms_p99"])
        self.assertEqual(load.rank(list(range(1000)), 0.99), 990)
        self.assertIsNone(load.rank(list(range(999)), 0.99))
        self.assertIsNone(load.rank([], 0.5))


    def answers(self, gap, count, also=()):
        """One request after the other, of 101 tokens so many seconds apart, then those that run beside the last."""
        return [load.Answer(1000.0 * n, [1000.0 * n + 1 + gap * i for i in range(101)], 101) for n in range(count)] + list(also)

    def test_gaps_are_compared_with_those_of_as_many_requests_under_way(self):
        alone, beside = self.answers(0.01, 10), self.answers(0.02, 10)
        self.assertEqual({number: len(gaps) for number, gaps in load.steady_gaps(alone).items()}, {1: 1000})
        for ratio in load.at_equal_load(beside, alone):
            self.assertAlmostEqual(ratio, 2)
        # Two at once, twice as slow: the same by themselves, whatever the mix.
        pair = [load.Answer(2e4, [2e4 + 1 + 0.02 * i for i in range(501)], 501) for _ in range(2)]
        for ratio in load.at_equal_load(pair + self.answers(0.01, 10), self.answers(0.01, 12, pair)):
            self.assertAlmostEqual(ratio, 1)
        self.assertEqual(load.at_equal_load(pair, alone), [None, None], "no gap has as many requests under way")

    def test_gaps_while_a_prompt_is_read_are_left_out_and_few_have_no_p99(self):
        alone = self.answers(0.01, 9)
        self.assertEqual(load.at_equal_load(alone, alone), [1, None])
        reader = load.Answer(1.5, [1.755], 1)  # while the first answer is between its tokens 50 and 76
        self.assertEqual({number: len(gaps) for number, gaps in load.steady_gaps(self.answers(0.01, 1, [reader])).items()}, {1: 74})
        self.assertEqual(load.at_equal_load(self.answers(0.01, 1)[:49], [load.Answer(0, [0.1 * i for i in range(50)], 50)]), [None, None])


class WrongArguments(unittest.TestCase):
    def test_are_named_with_exit_code_1_and_leave_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            url = "http://127.0.0.1:1"
            for script, arguments, why in [
                    ("load.py", ["127.0.0.1:80"], "an address such as http://127.0.0.1:8080"), ("load.py", ["http://127.0.0.1"], "an address such as"),
                    ("load.py", [url, "--rate", "nan"], "--rate: nan: at least 0.001 or 0"), ("load.py", [url, "--requests", "-1"], "at least 1 or 0"),
                    ("load.py", [url, "--output", "0"], "--output: 0: at least 1 was"), ("load.py", [url, "--at-once", "0"], "--at-once: 0"),
                    ("table.py", ["--rate", "0", "--", "x"], "--rate: 0: at least 0.001"), ("table.py", ["--requests", "0", "--", "x"], "--requests: 0"),
                    ("table.py", [], "required"), ("weights.py", ["gpt", "f16", f"{folder}/a"], "invalid choice: 'gpt'"),
                    ("weights.py", ["llama-1b", "f16", f"{folder}/none/a"], "No such file")]:
                done = subprocess.run([sys.executable, SERVING / script, *arguments], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (1, ""), arguments)
                self.assertRegex(done.stderr, f"^{script}: .*{why}")
            done = subprocess.run([sys.executable, SERVING / "load.py", url, "--json", f"{folder}/a"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 3)
            self.assertIn("Connect call failed", done.stderr)
            self.assertEqual(os.listdir(folder), [])


SERVER = """#!{python}
import json, sys
sys.path[:0] = ["{tests}", "{serving}"]
import serving_test
if "--broken" in sys.argv:
    sys.exit("no model")
class Server(serving_test.Answers):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
serving_test.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), Server).serve_forever()
"""
DEMARC = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *--sms*) echo "no masks here" >&2; exit 2;; esac
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


class Table(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.folder = Path(self.kept.name)
        self.log = self.folder / "demarc.log"
        self.tool("server", SERVER.format(python=sys.executable, tests=ROOT / "tests/python", serving=SERVING))
        self.tool("demarc", DEMARC.format(log=self.log))
        self.tool("nvidia-smi", "#!/bin/sh\necho 'Card, 1.2'\n")
        self.tool("nvidia-cuda-mps-control", f"#!/bin/sh\necho $* $CUDA_MPS_PIPE_DIRECTORY >> {self.folder}/mps.log\n")

    def tearDown(self):
        self.kept.cleanup()

    def tool(self, name, text):
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def table(self, *arguments, path=None):
        port = str(random.randrange(20000, 30000))
        return subprocess.run([sys.executable, SERVING / "table.py", "--demarc", "demarc", "--requests", "12", "--rate", "200", "--prompt", "4",
                               "--output", "100", "--port", port, *arguments], capture_output=True, text=True, timeout=300,
                              env=os.environ | {"PATH": path or f"{self.folder}:{os.environ['PATH']}"})

    def test_each_way_is_measured_and_one_that_fails_is_named(self):
        done = self.table("--ways", "percent,mask,part", "--memory", "8GiB", "--json", f"{self.folder}/table.json", "--", "server", "-x")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, "table.py: mask: demarc exec .* ended with 2:\nno masks here")
        rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")][1:]
        self.assertEqual([(row[0].strip(), row[1].strip()) for row in rows],
                         [("percent", "idle"), ("percent", "same"), ("percent", "prompts"), ("mask", "failed"),
                          ("part", "idle"), ("part", "same"), ("part", "prompts")])
        self.assertEqual(rows[0][8].strip(), "1.00x")
        self.assertLessEqual({rows[0][6].strip(), rows[0][7].strip()}, {"1.00x", "too few"})
        self.assertTrue(done.stdout.startswith("Card, 1.2; 200.0 requests per second, 12 requests of 4 + 100 tokens, seed 1; `server -x`"))
        written = json.loads((self.folder / "table.json").read_text())
        self.assertEqual(len(written["rows"]), 6)
        self.assertEqual([len(row["answers"]) for row in written["rows"]], 6 * [12])
        said = self.log.read_text()
        self.assertIn("exec --sms 50% -- server -x --host 127.0.0.1", said)
        for part in (1, 2):
            self.assertIn(f"exec --part {part}/2 --memory 8GiB -- server -x", said)
        mps = (self.folder / "mps.log").read_text().splitlines()
        self.assertEqual(len(mps), 4, "a daemon is started and stopped for each of two ways")
        self.assertNotIn("-d", mps[0].split()[1:])

    def test_wrong_arguments_and_missing_tools_are_named_before_anything_starts(self):
        done = self.table("--ways", "mask,half", "--", "server")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("there is no way 'half'", done.stderr)
        done = self.table("--", "server", path="/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("nvidia-smi is not installed", done.stderr)

    def test_a_server_that_ends_fails_its_way(self):
        done = self.table("--ways", "timeslice", "--", "server", "--broken")
        self.assertEqual(done.returncode, 3)
        self.assertIn("timeslice: server --broken ended with 1:\nno model", done.stderr)


if __name__ == "__main__":
    unittest.main()
