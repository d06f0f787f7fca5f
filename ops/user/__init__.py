"""The functions that users call: lifted `jax.numpy` and `jax.nn`, `ring_attention`."""
