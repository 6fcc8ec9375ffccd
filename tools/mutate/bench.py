"""A copy of the tree that is built once, into which one changed object file at a time is put."""

import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from switches import PROLOGUE, with_switches

CLANG = "clang++-14"


def copy_tree(source, target):
    """Makes `target` what `source` is, as far as git does not ignore it; what is the same keeps its time."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=source, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in listed if name and (source / name).exists()}
    for name in wanted:
        to = target / name
        if to.exists() and filecmp.cmp(source / name, to, shallow=False):
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, to)
        shutil.copymode(source / name, to)
    for folder in ("src", "include", "tests"):
        for old in (target / folder).rglob("*"):
            if old.is_file() and str(old.relative_to(target)) not in wanted:
                old.unlink()


class Bench:
    """One build of the copy, with one fault in it at a time, or with many behind switches; several go side by side."""

    def __init__(self, tree, name, room, targets, settings):
        self.tree = tree
        self.build = tree / "build" / name
        self.room = room
        self.targets = targets
        self.settings = settings
        self.dirty = set()  # files with faults in them
        self.compilers = {}
        self.headers = {}

    def prepare(self):
        """Configures and builds without a fault. Returns what was wrong, or nothing."""
        for kept in self.build.rglob("*.o.clean"):
            os.replace(kept, kept.with_suffix(""))
            kept.with_suffix("").touch()
        configure = ["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja", *self.settings]
        for command in (configure, self._ninja(os.cpu_count())):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                return f"{' '.join(command)}\n{(done.stdout + done.stderr)[-3000:]}"
        self.commands = {}
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            if (self.build / words[words.index("-o") + 1]).exists():  # other targets compile it too
                self.commands.setdefault(os.path.relpath(entry["file"], self.tree), []).append(words)
        (self.build / "tmp").mkdir(exist_ok=True)
        return None

    def _ninja(self, jobs=2):
        return ["ninja", "-C", str(self.build), f"-j{jobs}", *self.targets]

    def put(self, fault):
        """Builds the tests with a fault in them; False: it does not compile."""
        self.restore()
        source = self._write(fault.file, fault.apply((self.tree / fault.file).read_text()))
        self.dirty = {fault.file}
        for words in self.commands.get(fault.file, []):
            if not self._compile(fault.file, words, source):
                self.restore()
                return False
        done = subprocess.run(self._ninja(), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{fault.file}:{fault.line}: the tests do not link\n{done.stdout[-3000:]}")
        return True

    def put_together(self, faults):
        """Builds the tests with all faults of {number: fault} behind switches. Gives the numbers that are in the build."""
        self.restore()
        files = {}
        for number, fault in faults.items():
            files.setdefault(fault.file, {})[number] = fault
        placed = set()
        for file, wanted in sorted(files.items()):
            self.dirty.add(file)
            placed |= self._put_switches(file, wanted)
        done = subprocess.run(self._ninja(os.cpu_count()), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"the tests do not link\n{done.stdout[-3000:]}")
        return placed

    def _put_switches(self, file, wanted):
        """A line with a switch that does not compile loses it: it is named by the compiler, or else halves are tried."""
        clean = (self.tree / file).read_text()
        while wanted:
            text, placed = with_switches(clean, wanted)
            source = self._write(file, text, PROLOGUE)
            if all(self._compile(file, words, source) for words in self.commands.get(file, [])):
                return placed
            wrong = self._lines_with_errors(file, source) & {wanted[number].line for number in placed}
            if not wrong:
                return self._put_halves(file, wanted)
            wanted = {number: wanted[number] for number in placed if wanted[number].line not in wrong}
        return set()

    def _put_halves(self, file, wanted):
        numbers = sorted(wanted)
        good = {}
        for half in (numbers[:len(numbers) // 2], numbers[len(numbers) // 2:]):
            if half and half != numbers:
                part = self._put_switches(file, {number: wanted[number] for number in half})
                good.update({number: wanted[number] for number in part})
        return self._put_switches(file, good) if good and len(good) < len(numbers) else set()

    def _lines_with_errors(self, file, source):
        words = self.commands[file][0]
        command = self._compilers(file, words)[0] + ["-iquote", str((self.tree / file).parent), "-fsyntax-only", str(source)]
        told = subprocess.run(command, cwd=self.build, capture_output=True, text=True).stderr
        return {int(line) for line in re.findall(re.escape(str(self.tree / file)) + r":(\d+):\d+: (?:fatal )?error", told)}

    def _write(self, file, text, before=""):
        source = self.build / "mutant" / Path(file).name
        source.parent.mkdir(exist_ok=True)
        source.write_text(f'{before}#line 1 "{self.tree / file}"\n' + text)
        return source

    def _compile(self, file, words, source):
        target = self.build / words[words.index("-o") + 1]
        made = target.with_suffix(".mutant")
        for compiler in self._compilers(file, words):
            command = compiler + ["-iquote", str((self.tree / file).parent), "-o", str(made), "-c", str(source)]
            if subprocess.run(command, cwd=self.build, capture_output=True).returncode == 0:
                self._replace(target, made)
                return True
        return False

    def _replace(self, target, made):
        """The object has the time of the clean one, so that ninja takes it as it is; what is made of it is gone."""
        kept = Path(f"{target}.clean")
        times = target.stat()
        if kept.exists():
            target.unlink()
        else:
            os.replace(target, kept)
        os.replace(made, target)
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        self._forget(target)

    def _forget(self, target):
        name = str(target.relative_to(self.build))
        told = subprocess.run(["ninja", "-C", str(self.build), "-t", "query", name], capture_output=True, text=True,
                              check=True).stdout
        for output in re.findall(r"^    (\S+)$", told.split("outputs:")[1], re.MULTILINE):
            if (self.build / output).is_file():
                (self.build / output).unlink()

    def restore(self):
        for words in [words for file in self.dirty for words in self.commands.get(file, [])]:
            target = self.build / words[words.index("-o") + 1]
            kept = Path(f"{target}.clean")
            if kept.exists():
                os.replace(kept, target)
                self._forget(target)
        self.dirty = set()

    def _compilers(self, file, words):
        """The commands that compile this file as it is: clang with what most files begin with read before, four times
        as fast, or else the build's own."""
        if file not in self.compilers:
            plain = _without_outputs(words)
            fast = self._fast(plain)
            self.compilers[file] = [fast] if fast and self._is_good(fast, file) else [plain]
        return self.compilers[file]

    def _is_good(self, command, file):
        command = command + ["-iquote", str((self.tree / file).parent), "-fsyntax-only", str(self.tree / file)]
        return subprocess.run(command, cwd=self.build, capture_output=True).returncode == 0

    def _fast(self, plain):
        """Clang with a precompiled header for these options, or None."""
        if not shutil.which(CLANG):
            return None
        options = [CLANG] + plain[1:]
        key = " ".join(options)
        if key not in self.headers:
            header = self.build / "mutant" / f"begin_{len(self.headers)}.hpp"
            header.write_text("".join(f"#include {name}\n" for name in self._begins()))
            made = subprocess.run(options + ["-Xclang", "-fpch-instantiate-templates", "-x", "c++-header", str(header),
                                             "-o", f"{header}.pch"], cwd=self.build, capture_output=True)
            self.headers[key] = [] if made.returncode != 0 else ["-include-pch", f"{header}.pch"]
        return options + self.headers[key]

    def _begins(self):
        """The public headers that the room's sources include."""
        names = set()
        for source in (self.tree / "src" / self.room).rglob("*.[ch]pp"):
            names |= set(re.findall(r'^#include (<[^>]+>|"demarc/[^"]+")', source.read_text(), re.MULTILINE))
        # What ends so holds definitions: two objects that bring them do not link.
        return sorted(name for name in names if not name.endswith("-inl.h>"))


def _without_outputs(words):
    """A compiler's command without what it reads and writes, and with no word of warnings."""
    kept = [word for word in words if word != "-Werror"]
    at = kept.index("-o")
    return kept[:at] + ["-w"]
