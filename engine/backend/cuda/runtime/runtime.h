/* What the files of this folder share and nobody else needs. */
#pragma once
#include "../driver.h"

/* stream.c */
cu_event cuda_event_take(int device); /* without times, of the device, for the runtime's own use; NULL after lc_fail */
void     cuda_event_give(int device, cu_event event);

/* graph.c: what this thread is capturing. */
struct workspace;
typedef struct cuda_capture cuda_capture;
uint64_t                    cuda_capture_now(void);                       /* its number; 0: none */
struct workspace          **cuda_capture_workspaces(void);                /* its list; NULL: nothing is captured */
uint64_t                    cuda_capture_pool(void);                      /* the pool its memory comes from; 0: none */
bool                        cuda_captures_running(void);                  /* on any thread */
int                         cuda_capture_hold(lc_storage *s);             /* the graph keeps it */
void                        cuda_workspaces_free(struct workspace *list); /* handles.c */

/* program.c: compiled for the current device, or from the cache folder, under this hash of all that it depends on. */
cu_module cuda_module_from(const char *source, uint64_t hash, const char *const *options, int n_options);

/* memory.c: private pools of graphs. */
void cuda_pool_hold(uint64_t pool);
void cuda_pool_drop(uint64_t pool);   /* by the last holder: its memory goes back to the driver as it becomes free */
void cuda_memory_after_capture(void); /* frees that had to wait */

/* pinned.c */
int cuda_alloc_pinned(lc_storage *s);
int cuda_pinned_used(lc_storage *s); /* a copy of the current stream reads or writes it: it is not reused before that is done */
