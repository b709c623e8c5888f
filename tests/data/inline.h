/* Of inline.cu: a function that is inlined from another file. */
__device__ __forceinline__ float clamped(float x)
{
    return x > 2.0f ? 2.0f : x;
}
