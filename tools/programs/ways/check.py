#!/usr/bin/env python3
"""Runs each script plainly (with and without a profiler) and under demarc exec, and compares what was launched with what the report says.
usage: check.py DEMARC OUT [SCRIPT...]    environment: MODES (mask,nohost), TPCS (0-7), SOCKET and TENANT for the modes plain and strict, LIMIT (200 s)
  mask    exec --tpcs TPCS --audit                      launches by path; nothing is judged call by call
  nohost  exec --tpcs TPCS --no-host-memory --audit     every call is watched: unannounced and unseen launches are looked for
  plain   exec --tenant TENANT --allow-plain --audit    the same in a tenant, with machine code
  strict  exec --tenant TENANT --audit                  PTX alone
OUT/SCRIPT.MODE.{json,out,err}; OUT/check.txt and standard output: one line each. Exit code 3: something that was said is false."""
import json, os, pathlib, subprocess, sys, time
HERE = pathlib.Path(__file__).resolve().parent
ALL = ["ways", "ways-context", "ways-memory", "numba_ways.py", "children.py", "cupy_ways.py", "torch_exact.py", "cublas.py", "torch_wide.py", "compiled.py", "transformer.py", "jax_ways.py"]
demarc, out = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
scripts, bad = sys.argv[3:] or ALL, 0
modes = os.environ.get("MODES", "mask,nohost").split(",")
tpcs, limit = os.environ.get("TPCS", "0-7"), float(os.environ.get("LIMIT", "200"))
tenant = ["--tenant", os.environ.get("TENANT", "a"), "--socket", os.environ.get("SOCKET", "/tmp/demarc.sock")]
OPTIONS = {"mask": ["--tpcs", tpcs], "nohost": ["--tpcs", tpcs, "--no-host-memory"], "plain": tenant + ["--allow-plain", "--report"], "strict": tenant + ["--report"]}
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(out.resolve() / "inductor"))
os.environ.setdefault("TRITON_CACHE_DIR", str(out.resolve() / "triton"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

def say(text):
    print(text, flush=True)
    with open(out / "check.txt", "a") as f: f.write(text + "\n")

def command(script, counted=False):
    name, *sections = script.split("-")
    if name == "ways": return [str(HERE / "ways"), *sections]
    return [sys.executable, *([str(HERE / "counted.py")] if counted else []), str(HERE / script)]

def run(tag, argv):
    begin = time.time()
    with open(out / f"{tag}.out", "w") as o, open(out / f"{tag}.err", "w") as e:
        try: code = subprocess.run(argv, stdout=o, stderr=e, stdin=subprocess.DEVNULL, timeout=limit).returncode
        except subprocess.TimeoutExpired: code = 124
    return code, (out / f"{tag}.out").read_text(errors="replace"), time.time() - begin

def last_json(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try: return json.loads(line)
            except ValueError: pass
    return None

for script in scripts:
    code, text, secs = run(f"{script}.plainly", command(script))
    known = last_json(text)
    say(f"{script}: plainly exit {code}, {secs:.1f} s{', ' + text.strip().splitlines()[0][:90] if text.strip() else ''}")
    if code != 0: say(f"  does not work plainly: {(out / (script + '.plainly.err')).read_text(errors='replace').strip()[-200:]}"); continue
    truth = None
    if known: say(f"  known: {known}")
    if not script.startswith("ways") and script != "children.py":
        code, text, secs = run(f"{script}.counted", command(script, counted=True))
        truth = last_json(text) if code == 0 else None
        if truth is not None and "kernels" not in truth: truth = None
        say(f"  profiler: {truth if truth else 'exit %d, see %s.counted.err' % (code, script)}")
    for mode in modes:
        report = out / f"{script}.{mode}.json"
        report.unlink(missing_ok=True)
        code, text, secs = run(f"{script}.{mode}", [demarc, "exec", *OPTIONS[mode], "--audit", f"--json={report}", "--", *command(script)])
        if not report.exists():
            bad += 1
            say(f"  {mode}: exit {code}, {secs:.1f} s, no report: {(out / f'{script}.{mode}.err').read_text(errors='replace').strip()[-300:]}"); continue
        j = json.loads(report.read_text())
        paths = {p["path"]: p for p in j["paths"]}
        masked = {k: p["masked"] for k, p in paths.items() if p["masked"]}
        other = {f"{k} {w}": p[w] for k, p in paths.items() for w in ("unmasked", "refused") if p[w]}
        findings = {k: v for k, v in j["findings"].items() if v}
        wrong = []
        for name in ("unannounced_launches", "unseen_launches", "launches_outside", "launches_refused", "misunderstood_callbacks", "other_domains", "stale_graphs"):
            if findings.get(name): wrong.append(f"{name} {findings[name]}")
        if known and code == 0 and mode != "strict":
            more = known.get("may_be_more", {"graph": 8} if script == "ways-memory" else {})  # a fill and a copy in each of 4 launches
            for path in ("default stream", "stream", "graph"):
                least, found = known[path], masked.get(path, 0)
                if not least <= found <= least + more.get(path, 0): wrong.append(f"{path}: {found}, launched {least}")
            if masked.get("unknown"): wrong.append(f"unknown: {masked['unknown']}, by no launch of the script")
            if j["graphs"] != known["graphs"]: wrong.append(f"graphs: {j['graphs']}, launched {known['graphs']}")
        if truth and code == 0 and mode != "strict":
            total = sum(count for path, count in masked.items() if path != "copy or fill") + sum(other.values())
            if not truth["kernels"] <= total <= truth["kernels"] + truth["memsets"]: wrong.append(f"{total} launches, the profiler saw {truth['kernels']} kernels and {truth['memsets']} memsets")
        if wrong: bad += 1
        say(f"  {mode}: exit {code}, {secs:.1f} s, holds {j['holds']}, masked {masked}, graphs {j['graphs']}{', ' + str(other) if other else ''}, findings {findings}{'' if code else '  OK' if not wrong else ''}")
        for one in wrong: say(f"    DIFFERS: {one}")
        if code and mode != "mask": say(f"    said: {' | '.join(l for l in (out / f'{script}.{mode}.err').read_text(errors='replace').splitlines() if l.startswith('demarc'))[-400:]}")
say(f"{bad} runs whose report differs from what was launched, or that have none")
sys.exit(3 if bad else 0)
