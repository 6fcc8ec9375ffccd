"""transformers: a GPT-2 of two layers with random weights reads a prompt and writes 8 tokens; one step of training."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

def main():
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=256, vocab_size=1000, n_positions=128)).cuda().eval()
    ids = torch.arange(1, 17, device="cuda")[None]
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None)
    model.train(); model(ids, labels=ids).loss.backward()
    torch.cuda.synchronize()
    print("right" if out.shape[1] == 24 else "WRONG")
if __name__ == "__main__": main()
