# Says as JSON which packages Python programs import, and where these lie. Nothing is imported: the
# programs are parsed, and packages are looked up. The argument is the question, as JSON.
import ast
import importlib.util
import json
import os
import re
import sys

question = json.loads(sys.argv[1])
# Frameworks, and the packages beside them whose libraries they load.
frameworks = {
    "torch": ("nvidia", "triton"),
    "jax": ("nvidia", "jaxlib", "jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"),
    "tensorflow": ("nvidia",),
    "cupy": ("nvidia",),
    "numba": ("nvidia", "numba_cuda"),
    "triton": (),
}
stdlib = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
stdlib_folder = os.path.dirname(os.path.realpath(os.__file__))
packages, missing, problems, scanned = {}, set(), [], set()
waiting = [name.partition(".")[0] for name in question["modules"]]


def imports_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            text = getattr(node.args[0], "value", getattr(node.args[0], "s", None))
            if called in ("import_module", "__import__") and isinstance(text, str):
                yield text


def scan_text(text, name):
    try:
        waiting.extend(found.partition(".")[0] for found in imports_of(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError) as error:
        problems.append([name, "it cannot be parsed (%s)" % error])


def scan(path):
    path = os.path.realpath(path)
    if path in scanned:
        return
    scanned.add(path)
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        problems.append([path, "it cannot be read (%s)" % error.strerror])
        return
    scan_text(text, path)


def scan_folder(folder):
    for here, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                scan(os.path.join(here, name))


def is_installed(place):
    return any(part in ("site-packages", "dist-packages") for part in place.split(os.sep))


def is_of_python(name, places):
    if name in stdlib:
        return True
    return all(
        os.path.realpath(place).startswith(stdlib_folder + os.sep) and not is_installed(place)
        for place in places
    )


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class Installed:
    """What installed packages say of each other."""

    def __init__(self):
        self.by_name, self.by_top = {}, {}
        try:
            from importlib import metadata

            for one in metadata.distributions():
                name = one.metadata["Name"]
                if name and normal(name) not in self.by_name:
                    self.by_name[normal(name)] = one
                    for top in self.tops(one):
                        self.by_top.setdefault(top, []).append(one)
        except Exception as error:
            problems.append(["what the packages need", "the interpreter does not say (%s)" % error])

    @staticmethod
    def tops(one):
        text = one.read_text("top_level.txt")
        if text:
            return set(text.split())
        return {
            file.parts[0].partition(".")[0]
            for file in one.files or ()
            if file.suffix in (".py", ".so") or len(file.parts) > 1
        }

    def needs(self, top):
        for one in self.by_top.get(top, ()):
            for line in one.requires or ():
                name = normal(re.match(r"[A-Za-z0-9._-]+", line).group())
                optional = re.search(r"\bextra\s*==", line)
                if name not in self.by_name or (optional and name.partition("-cuda")[0] not in frameworks):
                    continue
                yield from self.tops(self.by_name[name])


installed = Installed()


def look_up(name):
    try:
        spec = importlib.util.find_spec(name)
    except Exception as error:
        problems.append([name, "the interpreter cannot look it up (%s)" % error])
        return
    if spec is None:
        missing.add(name)
        return
    places = list(spec.submodule_search_locations or ())
    if not places and spec.origin and os.path.isabs(spec.origin):
        places = [spec.origin]
    if not places or is_of_python(name, places):
        return
    packages[name] = places
    if not any(is_installed(place) for place in places):
        for place in places:
            scan_folder(place) if os.path.isdir(place) else place.endswith(".py") and scan(place)
        return
    waiting.extend(top for top in installed.needs(name) if top.isidentifier())
    for other in frameworks.get(name, ()):
        for place in places:
            folder = os.path.join(os.path.dirname(place), other)
            if os.path.isdir(folder):
                packages.setdefault(other, [folder])


if question["folder"] is not None and not getattr(sys.flags, "safe_path", sys.flags.isolated):
    sys.path[0] = question["folder"]
for script in question["scripts"]:
    scan(script)
if question["text"] is not None:
    scan_text(question["text"], "the text of -c")
seen = set()
while waiting:
    name = waiting.pop()
    if name and name not in seen:
        seen.add(name)
        look_up(name)
print(
    json.dumps(
        {
            "executable": os.path.realpath(sys.executable) if sys.executable else "",
            "packages": sorted([name, sorted(set(places))] for name, places in packages.items()),
            "missing": sorted(missing),
            "problems": problems,
        }
    )
)
