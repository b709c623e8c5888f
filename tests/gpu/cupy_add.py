"""CuPy: an elementwise kernel, a reduction, a raw kernel compiled at run time, and a matrix product, checked."""
import cupy

x = cupy.arange(1 << 20, dtype=cupy.float32)
y = x * 2 + 1
raw = cupy.RawKernel(
    'extern "C" __global__ void bump(float *v, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;'
    " if (i < n) v[i] += 3; }",
    "bump",
)
raw((4096,), (256,), (y, cupy.int32(y.size)))
a = cupy.ones((256, 256), dtype=cupy.float32)
print("cupy", float(y.sum(dtype=cupy.float64)), float((a @ a).sum()))
