"""Two processes, four devices each: no process sees all shards."""

from processes import run_together

PROGRAM = """
assert list(emulated) == jax.local_devices() and len(emulated) == 4
assert gl.emulate_devices(4) == jax.local_devices() != jax.devices()
device = gl.DeviceGrid((2, 4))
assert device.machine.hosts == (2, 1)
a = np.arange(35, dtype=np.float32).reshape(5, 7)
b = np.cos(np.arange(21, dtype=np.float32)).reshape(7, 3)
x = gl.put(a, gl.GridLayout((5, 7), grid=(3, 2), tile=(2, 2)), device)
w = gl.put(b, gl.GridLayout((7, 3), grid=(2, 4)), device)
assert not x.storage.is_fully_addressable
np.testing.assert_array_equal(np.asarray(x), a)
assert x.to_logical().is_fully_replicated
np.testing.assert_allclose(np.asarray(x @ w), a @ b, rtol=1e-5)
np.testing.assert_allclose(np.asarray(gl.numpy.sum(x, axis=1)), a.sum(1))
moved = gl.relayout(x, gl.GridLayout((5, 7), grid=(2, 4)))
np.testing.assert_array_equal(np.asarray(moved), a)
again = gl.from_physical(moved.physical, moved.layout, device)
np.testing.assert_array_equal(np.asarray(again), a)
grad = jax.jit(jax.grad(gl.on_grid(lambda w, x: jnp.sum(jnp.tanh(x @ w)))))(w, x)
want = jax.grad(lambda w: jnp.sum(jnp.tanh(a @ w)))(b)
np.testing.assert_allclose(np.asarray(grad), want, rtol=1e-4, atol=1e-5)
assert repr(x)
import tempfile
path = tempfile.mkdtemp() + "/x.bin"
try:
    gl.save_bytes(x, path=path)
except gl.LayoutError as error:
    assert "x.to_logical() in every process" in str(error)
    gl.save_bytes(x.to_logical(), x.layout, path)
np.testing.assert_array_equal(gl.load_bytes(path), a)
print("fine", flush=True)
"""


def test_two_processes() -> None:
    for ended in run_together(PROGRAM, count=2, devices=4):
        assert ended.code == 0, ended.err[-3000:]
        assert "fine" in ended.out
