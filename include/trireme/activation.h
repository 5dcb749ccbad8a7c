/* The pointwise functions of an MLP, with the names that config.json's hidden_act has for them. */
#ifndef TRIREME_ACTIVATION_H
#define TRIREME_ACTIVATION_H

enum tri_activation {
    TRI_ACT_SILU,       /* x * sigmoid(x) */
    TRI_ACT_GELU,       /* x * Phi(x), by erf */
    TRI_ACT_GELU_TANH,  /* the tanh approximation: gelu_new, gelu_pytorch_tanh, gelu_fast */
    TRI_ACT_QUICK_GELU, /* x * sigmoid(1.702 x) */
    TRI_ACT_RELU,
};

#endif
