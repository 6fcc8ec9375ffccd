"""Convolutions made of products (demarc/torch/_convolution.py) on NumPy's arrays, against sums over each place and element."""
import itertools
import sys
import types
import unittest

import numpy

from support import PACKAGE

sys.path.insert(0, str(PACKAGE))


class Array(numpy.ndarray):
    """A NumPy array with the methods of a tensor that are used there."""

    def dim(self):
        return self.ndim

    def transpose(self, first, second):
        return self.swapaxes(first, second)

    def reshape(self, *shape):  # NumPy takes any negative size for -1
        assert min(numpy.ravel(shape[0] if len(shape) == 1 else shape)) >= -1
        return super().reshape(*shape)

    def unsqueeze(self, dim):
        return numpy.expand_dims(self, dim).view(Array)

    def squeeze(self, dim=None):
        return numpy.squeeze(numpy.asarray(self), dim).view(Array)


def made(*shape, seed=1):
    return numpy.random.default_rng(seed).integers(-4, 5, shape).astype(numpy.float64).view(Array)


def places(size, kernel, dilation, padding, stride):
    """Slices of a padded input that an element of the kernel meets, one pair for each element."""
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride)]
    for at in itertools.product(*map(range, kernel)):
        yield [slice(i * d, i * d + s * (o - 1) + 1, s) for i, d, s, o in zip(at, dilation, stride, out)], out


def unfold(x, kernel, dilation, padding, stride):
    padded = numpy.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    parts = [padded[:, :, rows, columns] for (rows, columns), _ in places(x.shape[2:], kernel, dilation, padding, stride)]
    return numpy.stack(parts, 2).reshape(x.shape[0], -1, parts[0].shape[2] * parts[0].shape[3]).view(Array)


def fold(columns, size, kernel, dilation, padding, stride):
    elements = kernel[0] * kernel[1]
    out = numpy.zeros((columns.shape[0], columns.shape[1] // elements, *[n + 2 * p for n, p in zip(size, padding)]))
    for index, ((rows, others), extent) in enumerate(places(size, kernel, dilation, padding, stride)):
        out[:, :, rows, others] += columns.reshape(columns.shape[0], -1, elements, *extent)[:, :, index]
    return out[:, :, padding[0]:padding[0] + size[0], padding[1]:padding[1] + size[1]].view(Array)


def direct(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """aten.convolution of two dimensions by its definition."""
    n, channels, *size = x.shape
    kernel = weight.shape[2:]
    per_group = weight.shape[1] if transposed else weight.shape[0] // groups
    if transposed:
        extent = [(i - 1) * s - 2 * p + d * (k - 1) + o + 1
                  for i, s, p, d, k, o in zip(size, stride, padding, dilation, kernel, output_padding)]
    else:
        extent = [(i + 2 * p - d * (k - 1) - 1) // s + 1 for i, p, d, k, s in zip(size, padding, dilation, kernel, stride)]
    out = numpy.zeros((n, per_group * groups, *extent))
    small, large = (size, extent) if transposed else (extent, size)
    for at in itertools.product(*map(range, small)):
        for element in itertools.product(*map(range, kernel)):
            far = tuple(a * s + e * d - p for a, s, e, d, p in zip(at, stride, element, dilation, padding))
            if any(not 0 <= place < end for place, end in zip(far, large)):
                continue
            for group in range(groups):
                ins = slice(group * channels // groups, (group + 1) * channels // groups)
                outs = slice(group * per_group, (group + 1) * per_group)
                if transposed:
                    out[:, outs, *far] += numpy.asarray(x[:, ins, *at]) @ numpy.asarray(weight[ins, :, *element])
                else:
                    out[:, outs, *at] += numpy.asarray(x[:, ins, *far]) @ numpy.asarray(weight[outs, :, *element]).T
    return (out if bias is None else out + numpy.asarray(bias).reshape(-1, 1, 1)).view(Array)


aten = types.SimpleNamespace(convolution=types.SimpleNamespace(default=direct))
sys.modules["torch"] = types.SimpleNamespace(nn=types.SimpleNamespace(functional=types.SimpleNamespace(unfold=unfold, fold=fold)),
                                             ops=types.SimpleNamespace(aten=aten))
from demarc.torch import _convolution  # noqa: E402

# kernel, stride, padding, dilation, groups
SHAPES = [((3, 3), (1, 1), (1, 1), (2, 2), 1), ((3, 2), (2, 1), (0, 1), (1, 2), 2), ((1, 1), (1, 1), (0, 0), (2, 1), 4),
          ((2, 3), (3, 2), (2, 1), (2, 3), 1)]


class Convolutions(unittest.TestCase):
    def check(self, found, wanted):
        self.assertEqual(found.shape, wanted.shape)
        numpy.testing.assert_array_equal(found, wanted)

    def test_dilated_ones(self):
        for kernel, stride, padding, dilation, groups in SHAPES:
            x, weight, bias = made(2, 4, 9, 8), made(8, 4 // groups, *kernel, seed=2), made(8, seed=3)
            how = (stride, padding, dilation, False, (0, 0), groups)
            called = []
            aten.convolution.default = lambda *arguments: called.append(1)
            found = _convolution.convolution(x, weight, bias, *how)
            self.check(found, direct(x, weight, bias, *how))
            self.assertEqual(called, [])

    def test_transposed_ones(self):
        for kernel, stride, padding, dilation, groups in SHAPES:
            x, weight, bias = made(2, 4, 5, 6), made(4, 3, *kernel, seed=2), made(3 * groups, seed=3)
            how = (stride, padding, dilation, True, (stride[0] - 1, 0), groups)
            self.check(_convolution.convolution(x, weight, bias, *how), direct(x, weight, bias, *how))
            self.check(_convolution.convolution(x, weight, None, *how), direct(x, weight, None, *how))

    def test_transposed_ones_without_dilation_and_of_one_dimension(self):
        for groups in (1, 2):
            x, weight = made(2, 4, 5, 6), made(4, 3, 3, 3, seed=2)
            how = ((2, 2), (1, 1), (1, 1), True, (1, 0), groups)
            self.check(_convolution.convolution(x, weight, None, *how), direct(x, weight, None, *how))
            found = _convolution.convolution(x[:, :, 0], weight[:, :, 0], None, [2], [1], [1], True, [1], groups)
            wanted = direct(x[:, :, :1], weight[:, :, :1], None, (1, 2), (0, 1), (1, 1), True, (0, 1), groups)
            self.check(found, wanted[:, :, 0])

    def test_inductors_own_gets_the_others(self):
        aten.convolution.default = lambda *arguments: arguments[3:]
        for x, dilation in ((made(1, 1, 4, 4), [1, 1]), (made(1, 1, 4, 4, 4), [2, 2, 2])):
            self.assertEqual(_convolution.convolution(x, None, None, [1], [0], dilation, False, [0], 1), ([1], [0], dilation, False, [0], 1))

    def test_one_dimension_is_two_with_one_row(self):
        x, weight = made(2, 4, 9), made(6, 2, 3, seed=2)
        found = _convolution.convolution(x, weight, None, [2], [1], [2], False, [0], 2)
        wanted = direct(x[:, :, None], weight[:, :, None], None, (1, 2), (0, 1), (1, 2), False, (0, 0), 2)
        self.check(found, wanted[:, :, 0])

    def test_gradients_are_those_of_a_linear_function(self):
        for transposed, (kernel, stride, padding, dilation, groups) in itertools.product((False, True), SHAPES):
            x, weight = made(2, 4, 7, 8), made(*((4, 3) if transposed else (8, 4 // groups)), *kernel, seed=2)
            how = (stride, padding, dilation, transposed, (0, 0), groups)
            gradient = made(*direct(x, weight, None, *how).shape, seed=3)
            of_x, of_weight, of_bias = _convolution.convolution_backward(gradient, x, weight, [1], *how, (True, True, True))
            self.assertEqual((of_x.shape, of_weight.shape), (x.shape, weight.shape))
            for seed in (4, 5):  # <gradient, f(dx)> = <of_x, dx>, and so for the weight
                dx, dw = made(*x.shape, seed=seed), made(*weight.shape, seed=seed)
                self.assertEqual((gradient * direct(dx, weight, None, *how)).sum(), (of_x * dx).sum())
                self.assertEqual((gradient * direct(x, dw, None, *how)).sum(), (of_weight * dw).sum())
            self.check(of_bias, gradient.sum((0, 2, 3)))

    def test_gradients_of_one_dimension_are_those_of_one_row(self):
        for transposed, stride, groups in itertools.product((False, True), (1, 2), (1, 2)):
            x, weight = made(2, 4, 7), made(4, 3 if transposed else 4 // groups, 3, seed=2)
            two = ((1, stride), (0, 1), (1, 2), transposed, (0, 0), groups)
            gradient = made(*direct(x[:, :, None], weight[:, :, None], None, *two).shape, seed=3)
            found = _convolution.convolution_backward(gradient[:, :, 0], x, weight, [1], [stride], [1], [2], transposed, [0], groups, (True,) * 3)
            wanted = _convolution.convolution_backward(gradient, x[:, :, None], weight[:, :, None], [1], *two, (True,) * 3)
            self.check(found[0], wanted[0][:, :, 0])
            self.check(found[1], wanted[1][:, :, 0])
            self.check(found[2], wanted[2])

    def test_gradients_that_are_not_wanted_are_none(self):
        x, weight = made(1, 2, 5), made(2, 2, 3, seed=2)
        how = ([1], [0], [1], False, [0], 1)
        for mask in itertools.product((False, True), repeat=3):
            found = _convolution.convolution_backward(made(1, 2, 3, seed=3), x, weight, [2], *how, mask)
            self.assertEqual([one is not None for one in found], list(mask))
        of_x, of_weight, _ = found
        self.assertEqual((of_x.shape, of_weight.shape), (x.shape, weight.shape))

    def test_three_dimensions_are_left_to_the_host(self):
        with self.assertRaises(NotImplementedError):
            _convolution.convolution_backward(None, made(1, 1, 2, 2, 2), None, None, [1], [0], [1], False, [0], 1, (True,) * 3)


if __name__ == "__main__":
    unittest.main()
