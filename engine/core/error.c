/* Errors and warnings.
 *
 * An error is a record of the thread that failed: kind and text, overwritten by the next failure. A text that is too long is
 * truncated and ends in "...": an error path must not fail itself. The text is formatted in a buffer first, because callers
 * wrap an error by passing lc_error() as an argument of the next lc_fail.
 *
 * The record is on the heap: all thread-local variables of the library share the few hundred bytes that the loader keeps for
 * libraries that are opened late (the price of LC_HOT_TLS), and dlopen fails when they do not fit. */
#include "core.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 2048 };

typedef struct {
    lc_error_kind kind;
    char          text[TEXT_BYTES];
} record;

static record                no_error = { .text = "" };
static record                no_memory = { .kind = LC_OutOfMemory, .text = "out of memory: error record" };
static _Thread_local record *last = &no_error;
static pthread_key_t         exit_key;
static void                  make_key(void) { pthread_key_create(&exit_key, free); }

/* This thread's record, NULL if there is no memory for one. */
static record *record_of_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    record *r = pthread_getspecific(exit_key);
    if (r) return r;
    r = malloc(sizeof *r);
    if (r && pthread_setspecific(exit_key, r) == 0) return r;
    free(r);
    return NULL;
}

static void format(char text[TEXT_BYTES], const char *fmt, va_list ap)
{
    if (vsnprintf(text, TEXT_BYTES, fmt, ap) >= TEXT_BYTES) strcpy(text + TEXT_BYTES - 4, "...");
}

void *lc_fail(lc_error_kind kind, const char *fmt, ...)
{
    char    text[TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    format(text, fmt, ap);
    va_end(ap);
    record *r = record_of_thread();
    if (r) {
        r->kind = kind;
        strcpy(r->text, text);
    }
    last = r ? r : &no_memory;
    return NULL;
}

const char   *lc_error(void) { return last->text; }
lc_error_kind lc_error_last_kind(void) { return last->kind; }
const char   *lc_error_name(void)
{
    static const char *const names[] = {
#define X(name) #name,
        LC_ERRORS(X)
#undef X
    };
    return last == &no_error ? "none" : names[last->kind];
}

static void warn_on_stderr(const char *text) { fprintf(stderr, "lucid: warning: %s\n", text); }
void (*lc_warning_handler)(const char *text) = warn_on_stderr;

void lc_warn(const char *fmt, ...)
{
    char    text[TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    format(text, fmt, ap);
    va_end(ap);
    lc_warning_handler(text);
}

void lc_warn_once(atomic_bool *said, const char *fmt, ...)
{
    if (atomic_exchange(said, true)) return;
    char    text[TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    format(text, fmt, ap);
    va_end(ap);
    lc_warning_handler(text);
}

bool lc_verbose;

__attribute__((constructor(101))) static void read_verbose(void) /* runs before constructors that read it */
{
    const char *v = getenv("LUCID_VERBOSE");
    lc_verbose = v && *v && strcmp(v, "0") != 0;
}

void lc_log_line(const char *fmt, ...)
{
    char    text[TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    format(text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "lucid: %s\n", text);
}
