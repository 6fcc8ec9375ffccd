"""JAX: jit, matmul, scan, grad, random numbers, each 20 times (XLA makes CUDA graphs of what it runs again)."""
import os, subprocess, sys
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
quiet = {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"}  # measuring launches differ from run to run
if subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], env={**os.environ, **quiet, "JAX_PLATFORMS": "cpu"}, capture_output=True).returncode == 0:
    os.environ.update(quiet)  # XLA ends a program that gives it a flag that it does not know
import jax, jax.numpy as jnp

def main():
    f = jax.jit(lambda x: jnp.tanh(x @ x) + jnp.sin(x).sum(0))
    g = jax.jit(jax.grad(lambda w, x: jnp.square(jnp.tanh(x @ w)).mean()))
    h = jax.jit(lambda x: jax.lax.scan(lambda c, _: (jnp.cos(c) * 0.5, c.sum()), x, None, length=10))
    x = jax.random.normal(jax.random.PRNGKey(1), (512, 512))
    for _ in range(20): y = f(x)
    for _ in range(20): z = g(x, x)
    for _ in range(20): c, s = h(x)
    jax.block_until_ready((y, z, c, s))
    print("right" if bool(jnp.isfinite(y).all()) and bool(jnp.isfinite(z).all()) else "WRONG")
if __name__ == "__main__": main()
