"""torch/_inductor/choices.py of PyTorch 2.11: what InductorChoices has of kernels for products and convolutions."""
import types


def _choice(m, n, k, stages):
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "num_stages": stages}
    return types.SimpleNamespace(params=types.SimpleNamespace(to_kwargs=lambda: blocks), kwargs={name: blocks[name] for name in blocks
                                 if name != "num_stages"}, num_stages=stages, blocks=(m, n, k, stages))


FOUND = [_choice(*blocks) for blocks in ((16, 16, 64, 2), (128, 128, 64, 3), (64, 64, 64, 3), (64, 64, 64, 2), (64, 32, 64, 2),
                                         (128, 64, 64, 4), (16, 64, 64, 2))]


class InductorChoices:
    def _finalize_template_configs(self, template_choices, kernel_inputs, templates, op_name, kwarg_overrides=None):
        return list(template_choices)

    def get_conv_configs(self, device_type="cuda"):
        return lambda m, n, k, dtype_size: list(FOUND)
