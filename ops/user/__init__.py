"""What users call: lifted `jax.numpy` and `jax.nn`, `ring_attention`."""
