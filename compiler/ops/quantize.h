/* quantize.h - what the families of quantised operators share. */
#ifndef GCC_PLAN_OPS_QUANTIZE_H
#define GCC_PLAN_OPS_QUANTIZE_H

#include "compiler.h"

/* Input I, or a copy of it when its elements do not lie one after another. */
View dense_input(Lower *l, const Node *n, int i);
/* Least and largest number of an integer type of up to 16 bits. */
void quantized_range(DType t, double *low, double *high);

/* C text: the float VALUE, which is divided by the scale already, as type T: rounded, + ZERO (text, or NULL), saturated. */
const char *quantized_text(Compilation *c, DType t, const char *value, const char *zero);
/* One element each: a scale, and a zero point or buffer 0. */
typedef struct Quantisation { View scale, zero; } Quantisation;
/* The quantisation by inputs SCALE and ZERO (which may be absent, or -1). */
Quantisation quantisation_of(Lower *l, const Node *n, int scale, int zero);
/* Y = X, element by element: X times its scale when FROM, divided by Y's when TO; T is the type of Y. */
void requantize(Lower *l, const Node *n, View x, const Quantisation *from, View y, const Quantisation *to, DType t, const char *label);
/* X, floats, as u8 with a scale and zero point of its own, as DynamicQuantizeLinear does. */
View dynamic_quantize(Lower *l, const Node *n, View x, Quantisation *q);
/* False, and an error, when one of the inputs (those present) has not one element. */
bool one_element_each(Compilation *c, const Node *n, const int *inputs, int count);

#endif
