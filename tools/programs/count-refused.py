#!/usr/bin/env python3
"""Counts how many programs use what a tenant's program is refused on a card without windows, by their source.
usage: count-refused.py NAME=FOLDER...   FOLDER has a folder per program, such as cuda-samples/Samples or HeCBench/src
A folder is a program if a source in it, in whatever depth below it but not in another program's, has a kernel. Of HeCBench,
which has each program in several languages, only the folders that end in -cuda are looked at."""
import pathlib
import re
import sys

SOURCES = {".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".inl"}
# What is looked for, and a pattern: in the code of kernels and device functions, or in all code.
IN_KERNELS = {
    "`printf` in a kernel": r"\bprintf\s*\(",
    "`malloc` or `new` in a kernel": r"\bmalloc\s*\(|\bnew\s+[\w:]+\s*[\[({;]",
    "a barrier of the whole grid": r"\bthis_grid\s*\(|\bgrid_group\b",
    "kernels that launch kernels": r"<<<",
}
ANYWHERE = {
    "managed memory": r"\bcudaMallocManaged\b|\b__managed__\b|\bcuMemAllocManaged\b|\b(cuda|cu)MemAdvise\b|\b(cuda|cu)MemPrefetchAsync\b",
    "kernels on host memory": r"\b(cuda|cu(Mem)?)HostGetDevicePointer\b|\bcudaHostAllocMapped\b|\bcudaHostRegisterMapped\b",
    "textures, surfaces and arrays": r"\bcuda(Texture|Surface)Object_t\b|\b(tex|surf)[123]D\w*\s*[<(]|\btexture\s*<|\bcudaMalloc(3D|Mipmapped)?Array\b|\bcu(Array|Tex)\w*Create\b",
    "several cards": r"\bcudaDeviceEnablePeerAccess\b|\bcudaMemcpyPeer\w*|\bcuCtxEnablePeerAccess\b|\bcudaLaunchCooperativeKernelMultiDevice\b|\bnccl[A-Z]\w+\s*\(",
    "OpenGL, EGL, VDPAU and other interfaces": r"\bcudaGraphics\w+\s*\(|\bcuGraphics\w+\s*\(|\bcuda(Import)?External(Memory|Semaphore)\w*|\bcudaGL\w+\s*\(",
    "memory nodes of graphs": r"\bcudaGraphAddMem(Alloc|Free)Node\b",
    "memory handles for other processes, other than CUDA IPC": r"\bcuMemExportToShareableHandle\b|\bcudaMemPoolExport\w+",
    "values that streams wait for": r"\bcuStream(Wait|Write)Value\w*|\bcuStreamBatchMemOp\w*",
    "tensor maps": r"\bcuTensorMapEncode\w*|\bCUtensorMap\b",
    "copies in batches": r"\b(cuda|cu)Memcpy(3D)?BatchAsync\b",
    "persisting lines of the L2": r"\bcudaCtxResetPersistingL2Cache\b|\bcudaLimitPersistingL2CacheSize\b",
    "launches by `cuLaunchGrid`": r"\bcuLaunchGrid\w*|\bcuFuncSetBlockShape\b",
    "libraries of machine code other than cuBLAS": r"\b(cudnn|cufft|cusparse|cusolver|nppi?|nvjpeg|curand)(Create|Plan|Exec|Malloc|Set|Init|Get)\w*\s*\(|\bcutensor\w+\s*\(",
}


def without_comments(text):
    """The code, with strings that say nothing."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return token.sub(lambda found: " " if found.group().startswith("/") else '""', text)


def device_code(code):
    """The bodies of kernels and device functions."""
    bodies = []
    for begin in re.finditer(r"\b__(?:global|device)__\b", code):
        brace = re.compile(r"[{;=]").search(code, begin.end())
        if not brace or brace.group() != "{":
            continue
        depth, at = 1, brace.end()
        while depth and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        bodies.append(code[brace.end():at])
    return "\n".join(bodies)


def programs_in(folder):
    """Folder of a program -> its code. The outermost folders below FOLDER that hold sources themselves are programs."""
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in SOURCES and path.is_file()]
    holders = {path.parent for path in paths} - {folder}
    programs = {}
    for path in paths:
        holder = next((parent for parent in reversed(path.parents) if parent in holders), None)
        if holder:
            programs.setdefault(holder, []).append(without_comments(path.read_text(encoding="utf-8", errors="replace")))
    kernels = {program: "\n".join(code) for program, code in programs.items() if any("__global__" in text for text in code)}
    cuda = {program: code for program, code in kernels.items() if program.name.endswith("-cuda")}
    return cuda or kernels


def uses_of(code):
    kernels = device_code(code)
    return {name for patterns, text in ((IN_KERNELS, kernels), (ANYWHERE, code)) for name, pattern in patterns.items()
            if re.search(pattern, text)}


def main(arguments):
    corpora = {}
    for argument in arguments:
        name, _, folder = argument.partition("=")
        if not folder or not pathlib.Path(folder).is_dir():
            sys.exit(f"count-refused.py: {argument}: a name and a folder were expected, as HeCBench=HeCBench/src")
        corpora[name] = [uses_of(code) for code in programs_in(pathlib.Path(folder)).values()]
        if not corpora[name]:
            sys.exit(f"count-refused.py: {folder}: no program has a kernel")
    if not corpora:
        sys.exit(__doc__)
    print("| what is refused | " + " | ".join(f"{name}, {len(uses)} programs" for name, uses in corpora.items()) + " |")
    print("|---|" + "---:|" * len(corpora))
    names = [*IN_KERNELS, *ANYWHERE]
    for what in sorted(names, key=lambda what: -sum(what in uses for all_uses in corpora.values() for uses in all_uses)):
        print(f"| {what} | " + " | ".join(str(sum(what in uses for uses in all_uses)) for all_uses in corpora.values()) + " |")
    print("| none of these | " + " | ".join(str(sum(not uses for uses in all_uses)) for all_uses in corpora.values()) + " |")


main(sys.argv[1:])
