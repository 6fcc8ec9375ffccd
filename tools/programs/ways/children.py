"""Two processes below this one launch as numba_ways.py does; this one launches nothing itself."""
import json, pathlib, subprocess, sys
script = pathlib.Path(__file__).with_name("numba_ways.py")
all = [subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
words = [p.communicate()[0].split("\n")[0] for p in all]
print("right" if words == ["right", "right"] else f"WRONG: {words}")
print(json.dumps({"default stream": 200, "stream": 140, "graph": 0, "graphs": 0}))
