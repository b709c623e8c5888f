"""Batches from DataLoader workers, which fork; a product on each, in a named range, its gradient in autograd's thread."""
import torch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((256, 256), 1.0 + i)


def product(a, weight):
    return (a @ weight).relu()


weight = torch.ones(256, 256, device="cuda", requires_grad=True)
total = 0.0
for i, batch in enumerate(torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=2)):
    with torch.cuda.nvtx.range("batch %d" % i):
        out = product(batch.cuda(), weight)
        out.sum().backward()
    total += out.double().sum().item()
print("total %.3f gradient %.3f" % (total, weight.grad.double().sum().item()))
