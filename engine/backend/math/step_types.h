/* Coefficients of optimizer steps: ops fill them in, kernels read them. The CUDA kernels include this text. */
typedef enum {
    LC_STEP_SGD,
    LC_STEP_ADAM,
    LC_STEP_ADAGRAD,
    LC_STEP_RMSPROP,
    LC_STEP_ADADELTA,
    LC_STEP_ADAMAX,
    LC_STEP_NADAM,
    LC_STEP_RADAM,
    LC_STEP_ASGD,
    LC_STEP_RPROP,
    LC_STEPS
} lc_step_kind;
enum {                 /* variants; the op says which ones its algorithm supports */
       LC_STEP_L2 = 1, /* weight decay is part of the gradient */
       LC_STEP_MOMENTUM = 2,
       LC_STEP_FIRST = 4, /* the momentum has no value yet */
       LC_STEP_NESTEROV = 8,
       LC_STEP_AMSGRAD = 16,
       LC_STEP_CENTERED = 32,
       LC_STEP_RECTIFIED = 64
};
typedef struct {        /* coefficients of one parameter in this step, with everything folded in that all its elements share */
    double sign, decay; /* the gradient is sign * grad + decay * parameter */
    double shrink;      /* the parameter is first multiplied by this */
    double lr;          /* factor of the update */
    double beta1,
        beta2; /* decay rates of the averages; SGD: momentum and share of the gradient; Rprop: factors of a step size */
    double   eps, scale; /* scale: of the square root, or under it */
    double   extra;      /* NAdam: lr of the momentum; ASGD: weight in the average; Rprop: largest step size (eps: smallest) */
    unsigned variant;
} lc_step_numbers;
/* How the coefficients of a step follow from its number and the learning rate (steps.inc.c). */
typedef enum {
    LC_RULE_FIXED, /* the learning rate alone */
    LC_RULE_ADAM,
    LC_RULE_SPARSE_ADAM, /* eps is added to the root before its correction */
    LC_RULE_ADAMAX,
    LC_RULE_NADAM,
    LC_RULE_RADAM,
    LC_RULE_ADAGRAD,
    LC_RULE_ASGD
} lc_step_rule;
typedef struct {
    lc_step_rule    rule;
    lc_step_numbers fixed;     /* those that stay */
    double          decoupled; /* weight decay of the parameter itself */
    double          more[3];   /* NAdam: decay of the momentum; Adagrad: of the rate; ASGD: lambd, t0, alpha */
} lc_step_formula;
enum { LC_STEP_KEPT = 2 }; /* at most so many values per parameter go from step to step: NAdam's product; ASGD's mu and eta */
