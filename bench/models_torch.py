#!/usr/bin/env python3
"""Times the models of models.exs as transformers has them: eager, and as a CUDA graph. f32 without TF32.

Usage: models_torch.py [NAME ...]. Medians, in milliseconds. Needs PyTorch with CUDA and transformers.
"""

import statistics
import sys
import time

import torch
import transformers as hub

DEVICE = "cuda"
WARM = 1.0  # seconds


def text(batch, length):
    ids = torch.randint(5, 50, (batch, length), device=DEVICE)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def images(batch):
    return {"pixel_values": torch.randn(batch, 3, 224, 224, device=DEVICE)}


def summary():
    return {**text(4, 128), "decoder_input_ids": text(4, 32)["input_ids"], "use_cache": False}


def speech():
    features = torch.randn(1, 80, 3000, device=DEVICE)
    return {"input_features": features, "decoder_input_ids": text(1, 4)["input_ids"], "use_cache": False}


# What makes the model and its inputs, types, and whether its gradient is timed too.
MODELS = {
    "bert": (lambda: hub.BertModel(hub.BertConfig()), lambda: text(8, 128), ["float32", "bfloat16"], True),
    "vit": (lambda: hub.ViTModel(hub.ViTConfig()), lambda: images(16), ["float32", "bfloat16"], True),
    "resnet": (lambda: hub.ResNetModel(hub.ResNetConfig()), lambda: images(16), ["float32", "float16"], True),
    "convnext": (lambda: hub.ConvNextModel(hub.ConvNextConfig()), lambda: images(16), ["float32"], True),
    "gpt2": (
        lambda: hub.GPT2LMHeadModel(hub.GPT2Config()),
        lambda: {**text(1, 512), "use_cache": False},
        ["float32", "bfloat16"],
        True,
    ),
    "t5": (lambda: hub.T5ForConditionalGeneration(hub.T5Config()), summary, ["float32"], False),
    "swin": (lambda: hub.SwinModel(hub.SwinConfig()), lambda: images(8), ["float32"], False),
    "whisper": (lambda: hub.WhisperForConditionalGeneration(hub.WhisperConfig()), speech, ["float32"], False),
}


def tensors(result):
    if torch.is_tensor(result):
        return [result] if result.is_floating_point() else []
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else []
    return [tensor for part in parts for tensor in tensors(part)]


def timed(work, runs=15):
    until = time.perf_counter() + WARM
    while time.perf_counter() < until:
        work()
        torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def graph(work):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        work()
    return captured.replay


def line(name, work):
    eager = timed(work)
    try:
        captured = f"{timed(graph(work)):.2f} ms"
    except RuntimeError as error:  # It cannot be captured.
        torch.cuda.synchronize()
        captured = str(error).splitlines()[0]
    print(f"{name:34} eager {eager:.2f} ms, graph {captured}", flush=True)


def step(model, inputs):
    loss = sum((tensor * tensor).mean() for tensor in tensors(dict(model(**inputs))))
    return torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, (make, inputs, types, trains) in MODELS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        for kind in types:
            dtype = getattr(torch, kind)
            with torch.device(DEVICE):
                model = make().to(dtype).eval()
            given = inputs()
            for key, value in given.items():
                if torch.is_tensor(value) and value.is_floating_point():
                    given[key] = value.to(dtype)
            with torch.no_grad():
                line(f"{name} {kind} forward", lambda: model(**given))
            if trains and kind == "float32":
                line(f"{name} {kind} value and gradient", lambda: step(model, given))
            del model
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
