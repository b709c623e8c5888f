// What the programs of this folder share, with those of contact/: each prints a digest of its results, the same in
// every run, and then "NAME: ok". What varies from run to run goes to stderr.
#pragma once
#include "../contact/contact.cuh"
#include <vector>

static inline unsigned long long digest(const void *p, size_t bytes, unsigned long long sum = 14695981039346656037ull)
{
    const unsigned char *c = (const unsigned char *)p;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ c[i]) * 1099511628211ull;
    return sum;
}

template <typename T> static std::vector<T> to_host(const T *p, size_t n)
{
    std::vector<T> v(n);
    CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

template <typename T> static unsigned long long digest_of_device(const T *p, size_t n)
{
    return digest(to_host(p, n).data(), n * sizeof(T));
}

// The same numbers in every run.
static inline unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline int ended(const char *name, unsigned launches, unsigned long long sum)
{
    printf("%u launches, digest %016llx\n", launches, sum);
    return verdict(name, true);
}
