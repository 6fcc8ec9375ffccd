"""triton/knobs.py of Triton 3.6: the hooks."""
import types


class HookChain:
    def __init__(self):
        self.calls = []

    def add(self, function):
        if function not in self.calls:
            self.calls.append(function)

    def __call__(self, *arguments):
        for call in self.calls:
            call(*arguments)


runtime = types.SimpleNamespace(add_stages_inspection_hook=None, kernel_load_end_hook=HookChain())
nvidia = types.SimpleNamespace(disable_ptxas_opt=False)
