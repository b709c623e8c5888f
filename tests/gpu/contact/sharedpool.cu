// A pool that is exported as a file descriptor: the same program, started anew, imports the pool and one allocation of
// it, changes the memory with kernels of its own, and ends; the kernels of the first process go on from there.
#include "contact.cuh"
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1 << 14 };
struct parcel {
    cudaMemPoolPtrExportData pointer;
    int missing;
};

static bool transfer(int socket, parcel *p, int *fd, bool sending)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {p, sizeof(*p)};
    struct msghdr m = {};
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof(control);
    if (sending) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), fd, sizeof(int));
        return sendmsg(socket, &m, 0) == (ssize_t)sizeof(*p);
    }
    if (recvmsg(socket, &m, MSG_WAITALL) != (ssize_t)sizeof(*p) || !CMSG_FIRSTHDR(&m))
        return false;
    memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
    return true;
}

static int importer(int socket)
{
    parcel p;
    int fd;
    cudaMemPool_t pool;
    unsigned *v;
    cudaMemAccessDesc d = {};
    if (!transfer(socket, &p, &fd, false))
        return 3;
    CK(cudaFree(0));
    CK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)fd, cudaMemHandleTypePosixFileDescriptor, 0));
    d.location.type = cudaMemLocationTypeDevice;
    d.flags = cudaMemAccessFlagsProtReadWrite;
    CK(cudaMemPoolSetAccess(pool, &d, 1));
    CK(cudaMemPoolImportPointer((void **)&v, pool, &p.pointer));
    for (unsigned k = 10; k < 15; k++)
        mix<<<16, 256>>>(v, N, k);
    CK(cudaDeviceSynchronize());
    CK(cudaFree(v));
    CK(cudaMemPoolDestroy(pool));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return importer(atoi(argv[1]));
    int ends[2], fd = -1, status = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 9;
    pid_t child = fork();
    if (!child) {
        char number[12];
        snprintf(number, sizeof(number), "%d", ends[1]);
        close(ends[0]);
        execl("/proc/self/exe", argv[0], number, (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    cudaMemPool_t pool;
    cudaMemPoolProps p = {};
    cudaStream_t s;
    unsigned *v, want = 0;
    parcel out = {};
    p.allocType = cudaMemAllocationTypePinned;
    p.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    p.location.type = cudaMemLocationTypeDevice;
    NEEDS(cudaMemPoolCreate(&pool, &p), "pools with file descriptors");
    CK(cudaStreamCreate(&s));
    CK(cudaMallocFromPoolAsync((void **)&v, N * 4, pool, s));
    CK(cudaMemsetAsync(v, 0, N * 4, s));
    for (unsigned k = 0; k < 5; k++)
        mix<<<16, 256, 0, s>>>(v, N, k);
    CK(cudaStreamSynchronize(s));
    NEEDS(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0), "export of a pool");
    CK(cudaMemPoolExportPointer(&out.pointer, v));
    bool sent = transfer(ends[0], &out, &fd, true);
    waitpid(child, &status, 0);
    for (unsigned k = 20; k < 25; k++)
        mix<<<16, 256, 0, s>>>(v, N, k);
    CK(cudaStreamSynchronize(s));
    for (unsigned k = 0; k < 25; k++)
        if (k % 10 < 5)
            want = mixed(want, k);
    unsigned got = from_device(v + N - 1);
    CK(cudaFreeAsync(v, s));
    CK(cudaStreamSynchronize(s));
    printf("value %u, other process: %d\n", got, status);
    return verdict("sharedpool", sent && got == want && status == 0);
}
