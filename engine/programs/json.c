/* As much of a JSON reader as the header of a safetensors file takes: it never looks past the end, and recursion has a limit. */
#include "parts.h"
#include <string.h>

enum { DEPTH = 64 };

static void skip_blanks(lc_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) j->at++;
}

bool lc_json_take(lc_json *j, char c)
{
    skip_blanks(j);
    if (j->at == j->end || *j->at != c) return false;
    return j->at++, true;
}

static int hex4(lc_json *j, unsigned *code)
{
    if (j->end - j->at < 4) return -1;
    *code = 0;
    for (int i = 0; i < 4; i++) {
        char c = *j->at++;
        int  digit = c >= '0' && c <= '9'   ? c - '0'
                     : c >= 'a' && c <= 'f' ? c - 'a' + 10
                     : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                            : -1;
        if (digit < 0) return -1;
        *code = *code << 4 | (unsigned)digit;
    }
    return 0;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) *to++ = (char)code;
    else if (code < 0x800) *to++ = (char)(0xc0 | code >> 6), *to++ = (char)(0x80 | (code & 63));
    else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12), *to++ = (char)(0x80 | (code >> 6 & 63)), *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18), *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63)), *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

static int escaped(lc_json *j, unsigned *code) /* after \u: a pair of surrogates is one character */
{
    unsigned low;
    if (hex4(j, code) < 0 || (*code >= 0xdc00 && *code < 0xe000)) return -1;
    if (*code < 0xd800 || *code >= 0xdc00) return *code ? 0 : -1;
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') return -1;
    j->at += 2;
    if (hex4(j, &low) < 0 || low < 0xdc00 || low >= 0xe000) return -1;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

int lc_json_string(lc_json *j, char *text)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char             *to = text;
    if (!lc_json_take(j, '"')) return -1;
    while (j->at < j->end && *j->at != '"') {
        unsigned char c = (unsigned char)*j->at++;
        if (c < 0x20) return -1;
        if (c != '\\') {
            *to++ = (char)c;
            continue;
        }
        if (j->at == j->end) return -1;
        char        letter = *j->at++;
        const char *known = letter ? strchr(letters, letter) : NULL;
        unsigned    code;
        if (known) *to++ = meanings[known - letters];
        else if (letter != 'u' || escaped(j, &code) < 0) return -1;
        else to = put_utf8(to, code);
    }
    if (j->at == j->end) return -1;
    j->at++, *to = 0;
    return lc_json_is_utf8(text, (size_t)(to - text)) ? (int)(to - text) : -1;
}

int lc_json_count(lc_json *j, int64_t *n)
{
    skip_blanks(j);
    const char *start = j->at;
    for (*n = 0; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
        if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, *j->at - '0', n)) return -1;
    bool leading_zero = j->at - start > 1 && *start == '0';
    bool more = j->at < j->end && (*j->at == '.' || *j->at == 'e' || *j->at == 'E'); /* not an integer */
    return j->at == start || leading_zero || more ? -1 : 0;
}

static int skip_string(lc_json *j)
{
    while (j->at < j->end && *j->at != '"') j->at += *j->at == '\\' && j->end - j->at > 1 ? 2 : 1;
    return j->at++ < j->end ? 0 : -1;
}

static int skip_value(lc_json *j, int depth)
{
    if (depth == DEPTH) return -1;
    if (lc_json_take(j, '"')) return skip_string(j);
    for (int object = 0; object < 2; object++) {
        char close = object ? '}' : ']';
        if (!lc_json_take(j, object ? '{' : '[')) continue;
        if (lc_json_take(j, close)) return 0;
        do {
            if (object && (!lc_json_take(j, '"') || skip_string(j) < 0 || !lc_json_take(j, ':'))) return -1;
            if (skip_value(j, depth + 1) < 0) return -1;
        } while (lc_json_take(j, ','));
        return lc_json_take(j, close) ? 0 : -1;
    }
    const char *start = j->at;
    while (j->at<j->end && * j->at> ' ' && !strchr(",]}\":[{", *j->at)) j->at++; /* a number, true, false or null */
    return j->at > start ? 0 : -1;
}
int lc_json_skip(lc_json *j) { return skip_value(j, 0); }

bool lc_json_is_utf8(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    while (at < end) {
        unsigned char c = *at++;
        int more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
        if (more < 0 || end - at < more) return false;
        if ((c == 0xe0 && *at < 0xa0) || (c == 0xed && *at > 0x9f) || (c == 0xf0 && *at < 0x90) || (c == 0xf4 && *at > 0x8f))
            return false;
        for (; more; more--)
            if ((*at++ & 0xc0) != 0x80) return false;
    }
    return true;
}
