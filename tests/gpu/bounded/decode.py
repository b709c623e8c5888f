#!/usr/bin/env python3
"""Greedy decoding with a language model of transformers, with random weights and no download.

usage: decode.py {llama|gpt2} TOKENS

Prints the tokens' digest, which is the same in every run.
"""
import hashlib
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch
import transformers


def llama():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=8192, hidden_size=512, intermediate_size=1408, num_hidden_layers=10, num_attention_heads=8,
            num_key_value_heads=4, max_position_embeddings=512, bos_token_id=1, eos_token_id=None, pad_token_id=0,
        )
    )


def gpt2():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=8192, n_embd=384, n_layer=6, n_head=6, n_positions=512, bos_token_id=1, eos_token_id=None, pad_token_id=0
        )
    )


def main():
    tokens = int(sys.argv[2])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = {"llama": llama, "gpt2": gpt2}[sys.argv[1]]().eval().to(device=device, dtype=torch.bfloat16)
    prompt = (torch.arange(2, 2 + 24, device=device) * 37 % 8192).reshape(2, 12)
    with torch.inference_mode():
        ids = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, do_sample=False)
    ids = ids.cpu()
    print("tokens", tuple(ids.shape), hashlib.sha256(ids.numpy().tobytes()).hexdigest()[:16])


main()
