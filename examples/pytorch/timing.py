"""Times inferences, each waited for, on request: what detector.py and resnet.py share.

A program says "ready PID" when it has warmed up. Then, for each line "FRAMES SECONDS" on standard input, it runs that many
frames, or fewer if the seconds run out first, and answers with one line of JSON: the time of each in milliseconds, and the
SHA-256 of the last output. The end of the input ends it. With --endless it runs for ever and says how many frames it has run.
"""
import argparse
import ctypes
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import sys
import time


def import_torch():
    """PyTorch with a GPU, or exit code 2 with what is missing."""
    try:
        import torch
    except ImportError:
        print("PyTorch is missing here: pip install torch", file=sys.stderr)
        sys.exit(2)
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU here", file=sys.stderr)
        sys.exit(2)
    if os.environ.get("DEMARC_TENANT"):
        import demarc.torch
        demarc.torch.enable()
    elif os.environ.get("DEMARC_CAPTURE"):
        import demarc.torch
        demarc.torch.keep_ptx()
    else:  # a client of MPS that a signal ends while its kernels run ends the others' work; one that exits does not
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    return torch


def description(choice):
    return getattr(choice, "description", "")


def work_of(choice):
    """What one of Inductor's kernels is for: a product or convolution of inputs of these sizes."""
    inputs = [(str(node.get_dtype()), [int(size) for size in node.get_size()]) for node in choice.input_nodes]
    return f"{choice.name.rstrip('0123456789')} {inputs}"


def elements(choice, names):
    """Elements of a block of a kernel, along the axes of these names: BLOCK_M, BLOCK_N, BLOCK_K. None: it has no blocks."""
    sizes = re.findall(rf"BLOCK_[{names}]=(\d+)", description(choice))
    return math.prod(int(size) for size in sizes) if sizes else None


def preferred(picked, choices):
    """Inductor's kernels for one product or convolution with that in front which was `picked` for it. Where kernels were picked and
    none for this one, none of those that were tried was accepted, and the smallest blocks come first, which spill least. Where
    nothing was picked those do that take 128 columns at a time, then those whose blocks have 64 by 64 elements: Inductor's own
    order has the least first."""
    def rank(choice):
        text = description(choice)
        if text == picked.get(work_of(choice)):
            return 0
        if picked:
            return elements(choice, "MNK") or math.inf
        return 1 if "BLOCK_K=128" in text else 2 if "BLOCK_M=64, BLOCK_N=64" in text else 3
    return sorted(choices, key=rank)


def with_small_blocks(choices):
    """Those of Inductor's kernels whose blocks have at most 64 by 64 elements, all where none has. Larger ones keep more than the
    registers hold once their addresses are translated, and compile for seconds each."""
    return [choice for choice in choices if (elements(choice, "MN") or math.inf) <= 64 * 64] or choices


def note_picks(path):
    """Has Inductor say which kernel was the fastest for each product and convolution, and keeps it in the file `path`."""
    from torch._inductor.select_algorithm import add_feedback_saver
    picked = {}

    def note(timings, *_):
        ran = [(milliseconds, choice) for choice, milliseconds in timings.items() if math.isfinite(milliseconds)]
        if ran:
            best = min(ran, key=lambda one: one[0])[1]
            picked[work_of(best)] = description(best)
            pathlib.Path(path).write_text(json.dumps(picked, indent=1))
    add_feedback_saver(note)


def compiled(torch, network, picks=None, note_picks_in=None):
    """`network` through Inductor with kernels of Triton's alone, as in a tenant's colours, and the same ones in every program:
    each product is given the kernel that the file `picks` has for it, else the first one, without a trial, so that outputs can
    be compared to the bit. With `note_picks_in` those with small blocks are tried instead, and that file gets the fastest."""
    import torch._inductor.config as config
    from torch._inductor.select_algorithm import add_preprocessing_fn
    config.shape_padding = False  # is decided by a trial
    config.max_autotune_gemm = True
    config.max_autotune_gemm_backends = config.max_autotune_conv_backends = "TRITON"
    if note_picks_in:
        note_picks(note_picks_in)
        add_preprocessing_fn(with_small_blocks)
    else:
        config.deterministic = True
        picked = json.loads(pathlib.Path(picks).read_text()) if picks else {}
        add_preprocessing_fn(functools.partial(preferred, picked))
    return torch.compile(network, fullgraph=True)


def argument_parser(description):
    parser = argparse.ArgumentParser(description=description, epilog=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=0, help="time that many frames at once, print their figures, and end")
    parser.add_argument("--warm-up", type=int, default=20, help="frames before the first that is timed (20)")
    parser.add_argument("--compile", action="store_true", help="through torch.compile, with kernels of Triton's alone")
    parser.add_argument("--note-picks", metavar="FILE", help="with --compile: try kernels, and keep there which were the fastest")
    parser.add_argument("--picks", metavar="FILE", help="with --compile: take the kernels that --note-picks kept")
    parser.add_argument("--graph", action="store_true", help="run the network as a CUDA graph")
    parser.add_argument("--endless", action="store_true", help="run frames without end: a neighbour")
    return parser


def figures(times):
    """Mean, deviation, least, median, p99 and worst; p99 of at least 1000 times only, which a sample needs to have one."""
    ordered = sorted(times)
    n = len(ordered)
    mean = sum(ordered) / n
    deviation = (sum((x - mean) ** 2 for x in ordered) / max(n - 1, 1)) ** 0.5
    return {"mean": mean, "deviation": deviation, "least": ordered[0], "p50": ordered[n // 2],
            "p99": ordered[(n * 99) // 100] if n >= 1000 else None, "worst": ordered[-1], "frames": n}


def say(text):
    print(text, flush=True)


def say_ready():
    """Says that the program has warmed up, and in which process it runs; ends it if it has left its green context."""
    if "GREEN_HALF" in os.environ and ctypes.CDLL(None).green_half_left():
        sys.exit("the program has left the green context of its half")
    say(f"ready {os.getpid()}")


def serve(torch, network, frame, arguments):
    """Runs `network` on `frame` as the command line asks."""
    network = network.eval().cuda()
    if arguments.compile:
        network = compiled(torch, network, arguments.picks, arguments.note_picks)
    frame = frame.cuda()
    with torch.inference_mode():
        def run():
            return network(frame)
        for _ in range(arguments.warm_up):
            output = run()
        torch.cuda.synchronize()
        if arguments.graph:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                output = network(frame)

            def run():
                graph.replay()
                return output
            run()
            torch.cuda.synchronize()

        def timed(frames, seconds):
            times = []
            end = time.perf_counter() + seconds
            while len(times) < frames:
                begin = time.perf_counter()
                result = run()
                torch.cuda.synchronize()
                now = time.perf_counter()
                times.append((now - begin) * 1e3)
                if now > end:
                    break
            return times, hashlib.sha256(result.cpu().float().numpy().tobytes()).hexdigest()

        if arguments.frames:
            times, digest = timed(arguments.frames, 1e9)
            say(json.dumps(figures(times) | {"sha256": digest}))
            return
        say_ready()
        if arguments.endless:
            count = 0
            told = time.perf_counter()
            while True:
                run()
                torch.cuda.synchronize()
                count += 1
                if time.perf_counter() - told > 0.1:
                    told = time.perf_counter()
                    say(f"at {count}")
        for line in sys.stdin:
            frames, seconds = line.split()
            times, digest = timed(int(frames), float(seconds))
            say(json.dumps({"times": times, "sha256": digest}))
