/* A file that takes its name when it is complete and on disk: until then the old file stays, whatever happens. A link keeps pointing to the file, which is
 * replaced; a pipe or a device is written directly. As written_at_once of lucid/serialization/files.py. */
#include "parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const lc_whole_file *f, const char *what)
{
    return lc_fail_int(LC_LucidError, "cannot %s %s: %s", what, f->path ? f->path : "a file", strerror(errno));
}

static void forget(lc_whole_file *f)
{
    free(f->path), free(f->temporary);
    *f = (lc_whole_file){ .fd = -1 };
}

static int open_temporary(lc_whole_file *f)
{
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    int         folder = (int)(name - f->path), kept = (int)strnlen(name, 200); /* leaves space for the suffix */
    f->fd = -1;
    if (asprintf(&f->temporary, "%.*s.%.*s.%d-%08x.tmp", folder, f->path, kept, name, (int)getpid(),
                 (unsigned)lc_random_seed()) < 0)
        f->temporary = NULL;
    else f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return f->fd < 0 ? fail(f, "write") : 0;
}

int lc_whole_file_open(lc_whole_file *f, const char *path)
{
    struct stat old;
    char       *real = realpath(path, NULL); /* NULL: there is no such file yet */
    *f = (lc_whole_file){ .fd = -1, .mode = -1, .path = real ? real : strdup(path) };
    if (f->path && stat(f->path, &old) == 0) {
        f->mode = (int)(old.st_mode & 07777), f->direct = !S_ISREG(old.st_mode);
        if (f->direct) f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
    }
    int status = !f->path ? fail(f, "write") : !f->direct ? open_temporary(f) : f->fd < 0 ? fail(f, "write") : 0;
    if (status < 0) forget(f);
    return status;
}

int lc_whole_file_write(lc_whole_file *f, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        size_t  piece = bytes - done < (1u << 30) ? bytes - done : 1u << 30;
        ssize_t n = write(f->fd, (const char *)data + done, piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(f, "write");
        done += (size_t)n;
    }
    return 0;
}

static void sync_folder(const char *path) /* a file system that cannot do that keeps the name all the same */
{
    const char *slash = strrchr(path, '/');
    char       *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int         fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) fsync(fd), close(fd);
    free(folder);
}

int lc_whole_file_close(lc_whole_file *f, bool keep)
{
    int status = keep ? 0 : -1;
    if (keep && !f->direct) {
        bool kept = f->mode < 0 || fchmod(f->fd, (mode_t)f->mode) == 0;
        if (!kept || fsync(f->fd) < 0) status = fail(f, "write");
    }
    if (close(f->fd) < 0 && status == 0) status = fail(f, "write");
    if (!f->direct && status == 0 && rename(f->temporary, f->path) < 0) status = fail(f, "replace");
    if (!f->direct && status < 0) unlink(f->temporary);
    else if (!f->direct) sync_folder(f->path);
    forget(f);
    return keep ? status : 0;
}
