"""Kernels of cuBLAS, cuDNN and PyTorch, a few of each kind, for comparing values: matrix products in three precisions,
convolutions, a reduction, a softmax, a normalisation. What comes before is not profiled (profile-from-start off)."""
import torch

torch.manual_seed(0)
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
device = "cuda"
a = torch.randn(2048, 2048, device=device)
half, double = a.bfloat16(), a[:1024, :1024].double()
image = torch.randn(16, 64, 56, 56, device=device)
weight = torch.randn(64, 64, 3, 3, device=device)
torch.backends.cuda.matmul.allow_tf32 = False


def work():
    return [
        a @ a,
        half @ half,
        double @ double,
        torch.nn.functional.conv2d(image, weight, padding=1),
        torch.nn.functional.conv2d(image.half(), weight.half(), padding=1),
        torch.softmax(a, 1),
        torch.nn.functional.layer_norm(a, (2048,)),
        a.sum(0),
        torch.cumsum(a, 1),
    ]


work()  # libraries load and choose their kernels
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStart()
results = work()
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
print(" ".join("%.9g" % r.double().abs().sum().item() for r in results))
