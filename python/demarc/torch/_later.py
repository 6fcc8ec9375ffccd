"""Changes to modules of others, made at once where they are imported already, else right after they are."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

Action = Callable[[ModuleType], None]


class _Loader(importlib.abc.Loader):
    """The loader of a module, with actions after it. Where one raises, so does the import, and the next one too."""

    def __init__(self, loader: importlib.abc.Loader, waiting: dict[str, list[Action]]) -> None:
        self._loader = loader
        self._waiting = waiting

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # What the module knows of its loader is the real one.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for action in self._waiting.get(module.__name__, []):
            action(module)
        self._waiting.pop(module.__name__, None)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.waiting: dict[str, list[Action]] = {}

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self.waiting)
                return spec
        return None


_finder = _Finder()


def when_imported(name: str, action: Action) -> None:
    """Calls `action` with the module of that full name. Where it is imported later, `action` may refuse by raising."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting.setdefault(name, []).append(action)
