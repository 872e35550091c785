/* The coefficients of a step, in double precision, as torch.optim computes them on the host. FN: how functions are declared. */
FN double nadam_mu(const lc_step_formula *f, double step) { return f->fixed.beta1 * (1 - 0.5 * pow(0.96, step * f->more[0])); }
/* Step number `step` at learning rate lr. kept: what the step before left, and then what this one leaves; single: it is kept in
 * float32. */
FN lc_step_numbers step_numbers(const lc_step_formula *f, double lr, double step, double *kept, bool single)
{
    lc_step_numbers c = f->fixed;
    c.lr = lr;
    if (f->decoupled != 0) c.shrink = 1 - lr * f->decoupled;
    if (f->rule == LC_RULE_FIXED) return c;
    double power2 = pow(c.beta2, step), correction1 = 1 - pow(c.beta1, step), correction2 = 1 - power2;
    switch (f->rule) {
    case LC_RULE_FIXED:
        break;
    case LC_RULE_ADAM:
        c.lr = lr / correction1, c.scale = 1 / sqrt(correction2);
        break;
    case LC_RULE_SPARSE_ADAM:
        c.lr = lr * sqrt(correction2) / correction1;
        break;
    case LC_RULE_ADAMAX:
        c.lr = lr / correction1;
        break;
    case LC_RULE_NADAM: { /* the momentum of this step and of the next, and the product of all so far */
        double mu = nadam_mu(f, step), next = nadam_mu(f, step + 1);
        kept[0] = single ? (float)(kept[0] * (float)mu) : kept[0] * mu;
        c.lr = lr * (1 - mu) / (1 - kept[0]), c.extra = lr * next / (1 - kept[0] * next), c.scale = 1 / correction2;
        break;
    }
    case LC_RULE_RADAM: { /* rectification starts when the variance of the adaptive rate is tractable: at about the sixth step */
        double longest = 2 / (1 - c.beta2) - 1, length = longest - 2 * step * power2 / correction2;
        c.lr = lr / correction1;
        if (length <= 5) break;
        c.variant |= LC_STEP_RECTIFIED;
        c.scale = sqrt(correction2) * sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
        break;
    }
    case LC_RULE_ADAGRAD:
        c.lr = lr / (1 + (step - 1) * f->more[0]);
        break;
    case LC_RULE_ASGD: { /* kept: the weight in the average, and the learning rate, for the step that follows */
        double past = step - f->more[1];
        c.extra = kept[0], c.lr = kept[1], c.shrink = 1 - f->more[0] * kept[1];
        kept[0] = 1 / (past > 1 ? past : 1), kept[1] = lr / pow(1 + f->more[0] * lr * step, f->more[2]);
        break;
    }
    }
    return c;
}
