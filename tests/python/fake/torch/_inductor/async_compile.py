"""torch/_inductor/async_compile.py of PyTorch 2.11: a job goes to a worker by pickle, which has the parent's sys.path."""
import os
import pickle
import subprocess
import sys

from torch._inductor.runtime.compile_tasks import _worker_compile_triton

_WORKER = "import pickle, sys; job, args = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(pickle.dumps(job(*args)))"


def submit(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    job = pickle.dumps((_worker_compile_triton, arguments))
    return pickle.loads(subprocess.run([sys.executable, "-c", _WORKER], input=job, env=environment,
                                       stdout=subprocess.PIPE, check=True).stdout)
