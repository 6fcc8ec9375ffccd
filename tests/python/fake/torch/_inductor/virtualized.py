"""torch/_inductor/virtualized.py of PyTorch 2.11: V.set_choices_handler, which counts from its call on, in this thread alone."""
import threading
import types


class _Values(threading.local):
    def __init__(self):
        self.choices = None
        self.graph = types.SimpleNamespace(sizevars=types.SimpleNamespace(size_hint=lambda size, fallback: size))

    def set_choices_handler(self, handler):
        self.choices = handler


V = _Values()
