"""The entity-aware LSTM of Kratzert et al. (2019, https://doi.org/10.5194/hess-23-5089-2019, equations 1 to 6).

With the statics s and the inputs x_t of a window, and σ the logistic function:

    i    = σ(W_i s + b_i)                           the same at every step
    f_t  = σ(W_f x_t + U_f h_{t-1} + b_f)
    g_t  = tanh(W_g x_t + U_g h_{t-1} + b_g)
    o_t  = σ(W_o x_t + U_o h_{t-1} + b_o)
    c_t  = f_t ⊙ c_{t-1} + i ⊙ g_t                  c_0 = 0
    h_t  = o_t ⊙ tanh(c_t)                          h_0 = 0

Letters: B batch, L input steps, P target steps, Vx inputs, Vs statics, H hidden size.
"""

import math

import torch
from torch import nn


class EALSTM(nn.Module):
    """One entity-aware layer.

    Parameters
    ----------
    num_inputs, num_statics, hidden_size
        Vx, Vs and H.
    initial_forget_bias
        b_f at the start.

    Attributes
    ----------
    input_weight, recurrent_weight, bias
        float32 [Vx, 3H], [H, 3H] and [3H]: W, U and b of the gates f, o and g, in this order.
    static_weight, static_bias
        float32 [H, Vs] and [H]: W_i and b_i.

    Notes
    -----
    What the inputs add to the gates is one matrix product over all steps; left in the loop are the recurrent product
    and a few element-wise operations. Weights start as those of `torch.nn.LSTM`: uniform within ±1/√H.
    """

    def __init__(self, num_inputs: int, num_statics: int, hidden_size: int, initial_forget_bias: float) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.input_weight = nn.Parameter(torch.empty(num_inputs, 3 * hidden_size))
        self.recurrent_weight = nn.Parameter(torch.empty(hidden_size, 3 * hidden_size))
        self.bias = nn.Parameter(torch.empty(3 * hidden_size))
        self.static_weight = nn.Parameter(torch.empty(hidden_size, num_statics))
        self.static_bias = nn.Parameter(torch.empty(hidden_size))
        bound = 1.0 / math.sqrt(hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)
        with torch.no_grad():
            self.bias[:hidden_size] = initial_forget_bias

    def forward(self, x: torch.Tensor, static: torch.Tensor, steps: int) -> torch.Tensor:
        """Run over a batch of windows.

        Parameters
        ----------
        x
            float32 [B, L, Vx].
        static
            float32 [B, Vs].
        steps
            How many of the last hidden states to return.

        Returns
        -------
        torch.Tensor
            float [B, steps, H].
        """
        size = self.hidden_size
        input_gate = torch.sigmoid(nn.functional.linear(static, self.static_weight, self.static_bias))
        # Steps first, so that each is one contiguous block; unbound at once, or every step's gradient would be added
        # into an array as large as all of them.
        inputs = (x.transpose(0, 1) @ self.input_weight + self.bias).unbind(0)
        hidden = x.new_zeros(x.shape[0], size)
        cell = hidden
        kept = []
        for number, step in enumerate(inputs):
            gates = torch.addmm(step, hidden.to(step.dtype), self.recurrent_weight)
            forget, output = torch.sigmoid(gates[:, : 2 * size]).chunk(2, dim=1)
            # The cell state stays float32 under autocast: over a year small additions would be lost in 8 bits.
            cell = forget * cell + input_gate * torch.tanh(gates[:, 2 * size :])
            hidden = output * torch.tanh(cell)
            if number >= len(inputs) - steps:
                kept.append(hidden)
        return torch.stack(kept, dim=1)
