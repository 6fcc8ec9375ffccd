"""Convolutions of one and two dimensions for which Inductor has no Triton template, made of products.

Inductor's template is for the forward pass in two and three dimensions without dilation. Here an input's patches become
the columns of a matrix (unfold), and what is computed from columns is summed into an output's patches (fold). Shapes are
those of aten.convolution: input (N, C, H, W), weight (O, C / groups, kernel) or, transposed, (C, O / groups, kernel).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Sizes = Sequence[int]


def _columns(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """(N, groups, C / groups * kernel elements, places) of an input (N, C, H, W)."""
    import torch
    columns = torch.nn.functional.unfold(x, kernel, dilation, padding, stride)
    return columns.reshape(x.shape[0], groups, -1, columns.shape[-1])


def _grouped(x: Any, groups: int) -> Any:
    """(N, groups, C / groups, H * W) of (N, C, H, W)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)


def _forward(x: Any, weight: Any, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """A convolution without bias whose output has `size` places."""
    columns = _columns(x, weight.shape[2:], stride, padding, dilation, groups)
    out = weight.reshape(groups, weight.shape[0] // groups, -1) @ columns
    return out.reshape(x.shape[0], weight.shape[0], *size)


def _transposed(x: Any, weight: Any, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The transposed one: also the gradient of an input of `size` places."""
    import torch
    columns = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2) @ _grouped(x, groups)
    columns = columns.reshape(x.shape[0], -1, columns.shape[-1])
    return torch.nn.functional.fold(columns, size, weight.shape[2:], dilation, padding, stride)


def _two(values: Sizes, first: int) -> list[int]:
    """Values of two dimensions from those of one."""
    return [first, *values]


def convolution(x: Any, weight: Any, bias: Any, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool,
                output_padding: Sizes, groups: int) -> Any:
    """aten.convolution."""
    import torch
    if x.dim() == 3:
        out = convolution(x.unsqueeze(2), weight.unsqueeze(2), bias, _two(stride, 1), _two(padding, 0), _two(dilation, 1),
                          transposed, _two(output_padding, 0), groups)
        return out.squeeze(2)
    if x.dim() != 4 or not transposed and all(step == 1 for step in dilation):
        return torch.ops.aten.convolution.default(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    reach = [step * (extent - 1) for step, extent in zip(dilation, weight.shape[2:])]
    if transposed:
        size = [(n - 1) * s - 2 * p + r + o + 1 for n, s, p, r, o in zip(x.shape[2:], stride, padding, reach, output_padding)]
        out = _transposed(x, weight, size, stride, padding, dilation, groups)
    else:
        size = [(n + 2 * p - r - 1) // s + 1 for n, s, p, r in zip(x.shape[2:], stride, padding, reach)]
        out = _forward(x, weight, size, stride, padding, dilation, groups)
    return out if bias is None else out + bias.reshape(-1, 1, 1)


def convolution_backward(gradient: Any, x: Any, weight: Any, bias_sizes: Sizes | None, stride: Sizes, padding: Sizes,
                         dilation: Sizes, transposed: bool, output_padding: Sizes, groups: int, mask: Sequence[bool]) -> Any:
    """aten.convolution_backward: the gradients of input, weight and bias, None for those that `mask` leaves out."""
    if x.dim() == 3:
        of_x, of_weight, of_bias = convolution_backward(
            gradient.unsqueeze(2), x.unsqueeze(2), weight.unsqueeze(2), bias_sizes, _two(stride, 1), _two(padding, 0),
            _two(dilation, 1), transposed, _two(output_padding, 0), groups, mask)
        return (None if of_x is None else of_x.squeeze(2), None if of_weight is None else of_weight.squeeze(2), of_bias)
    if x.dim() != 4:
        raise NotImplementedError("a convolution of three dimensions")
    how = (stride, padding, dilation, groups)
    unfolded, small = (gradient, x) if transposed else (x, gradient)
    back = _forward if transposed else _transposed
    of_x = back(gradient, weight, x.shape[2:], *how) if mask[0] else None
    of_weight = None
    if mask[1]:
        columns = _columns(unfolded, weight.shape[2:], *how)
        of_weight = (_grouped(small, groups) @ columns.transpose(2, 3)).sum(0).reshape(weight.shape)
    return of_x, of_weight, gradient.sum((0, 2, 3)) if mask[2] else None
