"""torch/_dynamo/exc.py of PyTorch 2.11: the error of a function that was compiled for too many kinds of sizes."""


class FailOnRecompileLimitHit(RuntimeError):
    pass
