# tests/gpu/torch_tokens.py: text generation, token by token, by a small model like GPT-2 (6 layers, 512 wide, random
# weights, batch 1, keys and values kept): many small kernels, for each token as many launches, and a look at each one.
#
#   torch_tokens.py [transformers|own|cured [REPEATS]]
#
#   transformers   the model and the loop of the package transformers; exits with 77 where that is missing
#   own            a model and a loop of this file
#   cured          the same model: a step is a CUDA graph, and the host looks at the tokens at the end
#
# Prints a checksum of the tokens, and in a line with # when the loop began and ended (ns of CLOCK_REALTIME).
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

LAYERS, WIDTH, HEADS, WORDS = 6, 512, 8, 50257
TOKENS = 128
REPEATS = {"transformers": 2, "own": 16, "cured": 60}


def with_transformers():
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        print("torch_tokens: no transformers here", file=sys.stderr)
        sys.exit(77)
    config = GPT2Config(n_layer=LAYERS, n_embd=WIDTH, n_head=HEADS, vocab_size=WORDS)
    model = GPT2LMHeadModel(config).cuda().eval()
    first = torch.tensor([[11, 22, 33, 44]], device="cuda")

    def generate():
        tokens = model.generate(first, attention_mask=torch.ones_like(first), do_sample=False, use_cache=True,
                                min_new_tokens=TOKENS, max_new_tokens=TOKENS, pad_token_id=0)
        return tokens[0, first.shape[1]:].tolist()

    return generate


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        for name in "keys", "values":
            self.register_buffer(name, torch.zeros(1, HEADS, TOKENS, WIDTH // HEADS))

    def forward(self, x, place, seen):
        q, k, v = (part.view(1, HEADS, 1, WIDTH // HEADS) for part in self.qkv(self.before(x)).split(WIDTH, dim=1))
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        y = torch.nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.out(y.reshape(1, WIDTH))
        return x + self.down(torch.nn.functional.gelu(self.up(self.between(x))))


class Model(torch.nn.Module):
    """All that a step needs and leaves is on the GPU, in memory that stays where it is."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(TOKENS, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = torch.nn.LayerNorm(WIDTH)
        self.register_buffer("word", torch.zeros(1, dtype=torch.long))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))
        self.register_buffer("all_places", torch.arange(TOKENS))
        self.register_buffer("tokens", torch.zeros(TOKENS, dtype=torch.long))

    def begin(self):
        self.word.fill_(11)
        self.place.zero_()

    def step(self):
        seen = (self.all_places <= self.place).view(1, 1, 1, TOKENS)
        x = self.words(self.word) + self.places(self.place)
        for layer in self.layers:
            x = layer(x, self.place, seen)
        self.word.copy_((self.last(x) @ self.words.weight.t()).argmax(dim=1))
        self.tokens.index_copy_(0, self.place, self.word)
        self.place.add_(1)


def own():
    model = Model().cuda().eval()

    def generate():
        tokens = []
        model.begin()
        for _ in range(TOKENS):
            model.step()
            tokens.append(model.word.item())
        return tokens

    return generate


def cured():
    model = Model().cuda().eval()
    beside = torch.cuda.Stream()
    model.begin()
    with torch.cuda.stream(beside):
        for _ in range(3):
            model.step()
    beside.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model.step()

    def generate():
        model.begin()
        for _ in range(TOKENS):
            graph.replay()
        return model.tokens.tolist()

    return generate


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "transformers"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else REPEATS[mode]
    if not torch.cuda.is_available():
        sys.exit("torch_tokens: PyTorch finds no GPU")
    torch.manual_seed(1)
    checksum = 0
    with torch.no_grad():
        generate = {"transformers": with_transformers, "own": own, "cured": cured}[mode]()
        generate()
        torch.cuda.synchronize()
        begin_ns = time.time_ns()
        for _ in range(repeats):
            for token in generate():
                checksum = (31 * checksum + token) % 2**32
        torch.cuda.synchronize()
        end_ns = time.time_ns()
    print("tokens %d checksum %d" % (repeats * TOKENS, checksum))
    print("# loop %d %d" % (begin_ns, end_ns))


main()
