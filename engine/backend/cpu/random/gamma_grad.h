/* How a gamma or Dirichlet variable moves with its parameters while the uniform behind it stays: dx/da = -(dF/da) / f, of the distribution
 * function F and its density f. */
#pragma once
double gamma_grad_at(double alpha, double x);                   /* d gamma / d alpha, scale 1 */
double dirichlet_grad_at(double x, double alpha, double total); /* d x_i / d alpha_i over (1 - x_i); total: the sum of alpha */
