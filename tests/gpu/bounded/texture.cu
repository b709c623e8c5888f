// Optical flow over a pyramid of images, as Horn and Schunck have it: a texture object is made for each launch, and all
// are destroyed after each 502 launches. 7,546 launches of 23 kernels and shapes.
#include "bounded.cuh"

enum { LEVELS = 5, WARPS = 3, SOLVES = 500, FULL_W = 640, FULL_H = 480, TILE_X = 32, TILE_Y = 6 };

static unsigned launches;

static int width(int level)
{
    return FULL_W >> level;
}

static int height(int level)
{
    return FULL_H >> level;
}

__device__ static bool place(int w, int h, int *x, int *y)
{
    *x = blockIdx.x * blockDim.x + threadIdx.x;
    *y = blockIdx.y * blockDim.y + threadIdx.y;
    return *x < w && *y < h;
}

__global__ void halve(cudaTextureObject_t image, int w, int h, float *out)
{
    int x, y;
    if (place(w, h, &x, &y))
        out[y * w + x] = tex2D<float>(image, 2 * x + 1.0f, 2 * y + 1.0f);
}

// The image as the flow so far moves it.
__global__ void move(cudaTextureObject_t image, const float *u, const float *v, int w, int h, float *out)
{
    int x, y;
    if (place(w, h, &x, &y))
        out[y * w + x] = tex2D<float>(image, x + 0.5f + u[y * w + x], y + 0.5f + v[y * w + x]);
}

__global__ void derive(cudaTextureObject_t moved, const float *still, int w, int h, float *dx, float *dy, float *dt)
{
    int x, y;
    if (!place(w, h, &x, &y))
        return;
    float fx = x + 0.5f, fy = y + 0.5f;
    dx[y * w + x] = 0.5f * (tex2D<float>(moved, fx + 1, fy) - tex2D<float>(moved, fx - 1, fy));
    dy[y * w + x] = 0.5f * (tex2D<float>(moved, fx, fy + 1) - tex2D<float>(moved, fx, fy - 1));
    dt[y * w + x] = tex2D<float>(moved, fx, fy) - still[y * w + x];
}

// One iteration of the solver for one part of the flow.
__global__ void relax(cudaTextureObject_t part, const float *d, const float *dt, int w, int h, float *out)
{
    int x, y;
    if (!place(w, h, &x, &y))
        return;
    float fx = x + 0.5f, fy = y + 0.5f;
    float mean = 0.25f * (tex2D<float>(part, fx - 1, fy) + tex2D<float>(part, fx + 1, fy) +
                          tex2D<float>(part, fx, fy - 1) + tex2D<float>(part, fx, fy + 1));
    float g = d[y * w + x];
    out[y * w + x] = mean - g * (g * mean + dt[y * w + x]) / (0.1f + g * g);
}

// The flow of the level above, for this level.
__global__ void enlarge(cudaTextureObject_t part, int w, int h, float *out)
{
    int x, y;
    if (place(w, h, &x, &y))
        out[y * w + x] = 2 * tex2D<float>(part, 0.5f * (x + 0.5f), 0.5f * (y + 0.5f));
}

static std::vector<cudaTextureObject_t> made;

// A new texture of an image, for the next launch.
static cudaTextureObject_t texture_of(const float *image, int level)
{
    cudaTextureObject_t object;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = (void *)image;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = width(level);
    resource.res.pitch2D.height = height(level);
    resource.res.pitch2D.pitchInBytes = width(level) * sizeof(float);
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    CK(cudaCreateTextureObject(&object, &resource, &how, NULL));
    made.push_back(object);
    return object;
}

// Destroys all textures: no launch may use them any more.
static void destroy_textures()
{
    CK(cudaDeviceSynchronize());
    for (cudaTextureObject_t object : made)
        CK(cudaDestroyTextureObject(object));
    launches += made.size();
    made.clear();
}

static dim3 grid(int level)
{
    return dim3((width(level) + TILE_X - 1) / TILE_X, (height(level) + TILE_Y - 1) / TILE_Y);
}

static const dim3 block(TILE_X, TILE_Y);
static float *pyramid[2][LEVELS], *u, *v, *next, *moved, *dx, *dy, *dt;

static void relax_part(float **part, const float *d, int level)
{
    relax<<<grid(level), block>>>(texture_of(*part, level), d, dt, width(level), height(level), next);
    std::swap(*part, next);
}

static void enlarge_part(float **part, int level)
{
    enlarge<<<grid(level), block>>>(texture_of(*part, level + 1), width(level), height(level), next);
    std::swap(*part, next);
}

static void flow_of(int level)
{
    int w = width(level), h = height(level);
    for (int i = 0; i < WARPS; i++) {
        move<<<grid(level), block>>>(texture_of(pyramid[1][level], level), u, v, w, h, moved);
        derive<<<grid(level), block>>>(texture_of(moved, level), pyramid[0][level], w, h, dx, dy, dt);
        for (int k = 0; k < SOLVES / 2; k++) {
            relax_part(&u, dx, level);
            relax_part(&v, dy, level);
        }
        CK(cudaGetLastError());
        destroy_textures();
    }
}

int main()
{
    const size_t n = FULL_W * FULL_H;
    std::vector<float> image(n);
    unsigned state = 7;
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < n; i++)
            image[i] = (float)((i + 3 * which) % FULL_W) / FULL_W + (next_random(&state) & 255) / 2048.0f;
        for (int level = 0; level < LEVELS; level++)
            pyramid[which][level] = device_zeros<float>(n);
        CK(cudaMemcpy(pyramid[which][0], image.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        for (int level = 1; level < LEVELS; level++)
            halve<<<grid(level), block>>>(texture_of(pyramid[which][level - 1], level - 1), width(level), height(level),
                                          pyramid[which][level]);
    }
    for (float **p : {&u, &v, &next, &moved, &dx, &dy, &dt})
        *p = device_zeros<float>(n);
    for (int level = LEVELS - 1; level >= 0; level--) {
        if (level < LEVELS - 1) {
            enlarge_part(&u, level);
            enlarge_part(&v, level);
        }
        flow_of(level);
    }
    unsigned long long sum = digest_of_device(u, n) ^ 3 * digest_of_device(v, n);
    return ended("texture", launches, sum);
}
