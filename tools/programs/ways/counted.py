"""Runs a script, or a main() of one, under PyTorch's profiler (CUPTI) and says what the card ran. usage: counted.py SCRIPT; the last line is JSON."""
import collections, json, os, pathlib, runpy, sys, tempfile
import torch
from torch.profiler import ProfilerActivity, profile
torch.cuda.init()  # makes the context without a launch
with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    torch.cuda.synchronize()
path = pathlib.Path(tempfile.mkdtemp()) / "trace.json"
p.export_chrome_trace(str(path))
events = json.loads(path.read_text(errors="replace"))["traceEvents"]
counts = collections.Counter(e.get("cat") for e in events if e.get("ph") == "X")
# "runtime" and "driver" calls by name: launches of graphs
calls = collections.Counter(e.get("name") for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver"))
print(json.dumps({"kernels": counts["kernel"], "memsets": counts["gpu_memset"], "memcpys": counts["gpu_memcpy"],
                  "calls": {k: v for k, v in calls.items() if "Launch" in k}}))
