"""One training step of ResNet-18 with autocast; prints the loss and a checksum of the updated weights."""
import torch
import torchvision

torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False
torch.use_deterministic_algorithms(True, warn_only=True)
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(4, 3, 112, 112, device="cuda")
labels = torch.arange(4, device="cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
loss.backward()
optimizer.step()
torch.cuda.synchronize()
total = sum(p.detach().double().sum().item() for p in model.parameters())
print("loss %.9f weights %.9f" % (loss.item(), total))
