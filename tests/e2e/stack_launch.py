"""Launches from Python, for tests/e2e/stack.sh: with a grid of 1 from a method, with 2 from a callback of C code."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
pointer = ctypes.c_void_p


def must(result):
    assert result == 0, result


device, context, module, function, stream = ctypes.c_int(), pointer(), pointer(), pointer(), pointer()
memory, n = ctypes.c_uint64(), ctypes.c_int(256)
must(cuda.cuInit(0))
must(cuda.cuDeviceGet(ctypes.byref(device), 0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
must(cuda.cuCtxSetCurrent(context))
must(cuda.cuModuleLoadData(ctypes.byref(module), b"FAKEMOD increment"))
must(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"increment"))
must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
must(cuda.cuMemAlloc_v2(ctypes.byref(memory), 4 * n.value))
must(cuda.cuMemsetD8_v2(memory, 0, 4 * n.value))
parameters = (pointer * 2)(ctypes.addressof(memory), ctypes.addressof(n))


def launch(blocks):
    must(cuda.cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream, parameters, None))  # LAUNCH


class Net:
    def forward(self):
        launch(1)  # FORWARD


def key(item):
    launch(2)  # KEY
    return item


Net().forward()  # NET
sorted([1], key=key)  # SORT
must(cuda.cuStreamSynchronize(stream))
print("launches: right")
