#!/usr/bin/env python3
"""Small inputs for Rodinia (the clone has no data folder) and HeCBench's bmf. usage: inputs.py PROGS_DIR"""
import os, random, sys
P = sys.argv[1]
def put(name, text):
    os.makedirs(os.path.dirname(f'{P}/{name}'), exist_ok=True)
    open(f'{P}/{name}', 'wb' if isinstance(text, bytes) else 'w').write(text)
r = random.Random(7)
n = 16384  # as Rodinia's graphgen writes: nodes (start, edges), source, edges (id, cost)
deg = [r.randint(2, 8) for _ in range(n)]
out, at = [f'{n}'], 0
for d in deg: out.append(f'{at} {d}'); at += d
out += ['', '0', '', f'{at}'] + [f'{r.randrange(n)} {r.randint(1, 10)}' for _ in range(at)]
put('rod-bfs/graph16384.txt', '\n'.join(out) + '\n')
put('rod-hotspot/temp_256', ''.join(f'{r.uniform(320, 345):.4f}\n' for _ in range(256 * 256)))
put('rod-hotspot/power_256', ''.join(f'{r.uniform(0, .005):.6f}\n' for _ in range(256 * 256)))
put('rod-hotspot3D/temp_64x8', ''.join(f'{r.uniform(320, 345):.4f}\n' for _ in range(64 * 64 * 8)))
put('rod-hotspot3D/power_64x8', ''.join(f'{r.uniform(0, .005):.6f}\n' for _ in range(64 * 64 * 8)))
for k in range(2):  # hurricane_gen's records
    put(f'rod-nn/cane4_{k}.db', ''.join('%4d %2d %2d %2d %2d %-9s %5.1f %5.1f %4d %4d\n' % (r.randint(1950, 2004), r.randint(1, 12), r.randint(1, 28), r.choice((0, 6, 12, 18)), r.randint(1, 28), r.choice(('ALBERTO', 'BERYL', 'CHRIS', 'DEBBY')), r.uniform(7, 70), r.uniform(0, 358), r.randint(10, 165), r.randint(0, 900)) for _ in range(5000)))
put('rod-nn/filelist', 'cane4_0.db\ncane4_1.db\n')
keys = r.sample(range(1000000), 60000)
put('rod-b+tree/mil.txt', '60000\n' + ''.join(f'{k}\n' for k in keys))
put('rod-b+tree/command.txt', 'j 6000 3000\nk 10000\n')
put('rod-dwt2d/192.rgb', bytes(r.getrandbits(8) & 0xf0 for _ in range(192 * 192 * 3)))
A = [r.getrandbits(5) for _ in range(300)]; B = [r.getrandbits(5) & r.getrandbits(5) for _ in range(400)]
C = [(i, j) for i in range(300) for j in range(400) if bool(A[i] & B[j]) != (r.random() < .01)]
put('hec-bmf/data.in', f'300 400 {len(C)}\n' + ''.join(f'{i} {j}\n' for i, j in C))
