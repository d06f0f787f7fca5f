"""The devices that a chunk emulates, as the test suite does."""

import os

# Machine code that runs once is not worth optimizing.
FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


def emulate(count):
    """Have JAX make `count` devices of the CPU; call it before anything asks JAX for one."""
    os.environ["NPROC"] = str(max(2 * count, int(os.environ.get("NPROC") or 0)))
    os.environ.setdefault("XLA_FLAGS", FLAGS)
    import jax

    jax.config.update("jax_num_cpu_devices", count)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_compilation_cache", False)
