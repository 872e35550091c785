/* Shared by the files of this folder, not for programs. */
#pragma once
#include "programs.h"

int lc_state_dict_append(lc_state_dict *d, const char *name, lc_tensor *t); /* the name is not there yet */

/* ---- a file that appears whole or not at all (whole_file.c) ---- */
typedef struct {
    int   fd;
    bool  direct; /* a pipe or a device, written as it is */
    int   mode;   /* of the file that is replaced; -1: there is none */
    char *path, *temporary;
} lc_whole_file;
int lc_whole_file_open(lc_whole_file *f, const char *path);
int lc_whole_file_write(lc_whole_file *f, const void *data, size_t bytes);
int lc_whole_file_close(lc_whole_file *f, bool keep); /* keep: it is on disk and takes its name; else nothing has happened */

/* ---- JSON (json.c): a text is read once, from left to right. Functions that return int or bool give -1 or false where the text is not what is asked for ---- */
typedef struct {
    const char *at, *end;
} lc_json;
bool lc_json_take(lc_json *j, char c); /* this character comes next, and is passed */
/* A string, decoded into UTF-8 with a 0 at the end, in `text` of at least as many bytes as are left. A zero character is refused, as is wrong UTF-8. */
int  lc_json_string(lc_json *j, char *text); /* its length */
int  lc_json_count(lc_json *j, int64_t *n);  /* an integer that is not negative */
int  lc_json_skip(lc_json *j);               /* any value */
bool lc_json_is_utf8(const char *text, size_t bytes);
