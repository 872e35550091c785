/* The order of the passes, and what they share. */
#include "passes.h"
#include <stdlib.h>
#include <string.h>

bool lc_step_writes(const lc_step *s, int k) { return k >= s->n_in || lc_step_writes_input(s, k); }

bool lc_same_plan(const lc_pass *p, int i, int j)
{
    for (int k = 0; k < p->n_starts; k++)
        if ((i < p->starts[k]) != (j < p->starts[k])) return false;
    return true;
}

void lc_pass_count(lc_pass *p)
{
    const lc_graph *g = p->g;
    memset(p->writes, 0, (size_t)g->n_buffers * sizeof *p->writes);
    memset(p->uses, 0, (size_t)g->n_buffers * sizeof *p->uses);
    for (int i = 0; i < g->n_steps; i++) {
        const lc_step *s = &g->steps[i];
        for (int k = 0; k < s->n_in + s->n_out && !s->dead; k++) {
            if (s->in[k] < 0) continue;
            int  b = g->values[s->in[k]].buffer;
            bool counted = false; /* an in-place step writes its input and its output: that is one write */
            for (int before = 0; before < k && !counted; before++)
                counted = s->in[before] >= 0 && g->values[s->in[before]].buffer == b && lc_step_writes(s, before);
            p->uses[b]++;
            p->writes[b] += lc_step_writes(s, k) && !counted;
        }
    }
}

int lc_simplify(lc_graph *g, const int *outputs, int n_outputs, const int *starts, int n_starts)
{
    size_t  n = (size_t)g->n_buffers + 1;
    lc_pass p = { g, starts, n_starts, calloc(n, sizeof *p.kept), calloc(n, sizeof *p.writes), calloc(n, sizeof *p.uses) };
    bool    enough = p.kept && p.writes && p.uses;
    for (int i = 0; i < n_outputs && enough; i++) p.kept[g->values[outputs[i]].buffer] = true;
    if (enough) {
        lc_pass_count(&p), lc_fold_constants(&p);
        lc_pass_count(&p), lc_share_common_steps(&p);
        lc_pass_count(&p), lc_fuse_epilogues(&p);
        lc_pass_count(&p), lc_recompute(&p);
    }
    free(p.kept), free(p.writes), free(p.uses);
    return enough ? 0 : lc_fail_int(LC_OutOfMemory, "out of memory: passes over a graph");
}
