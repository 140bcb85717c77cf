/* Makes calls to the file system fail: loaded before the C library by `faulty.py`, which says what.
 *
 * Counted are calls of the kinds asked for, on what lies below $FAULTY_UNDER, over all processes that
 * inherit the environment; from a given one on they fail, once or for ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, MAKE = 2, RENAME = 4, SYNC = 8 };

/* `faulty.LAYOUT` says the same. */
struct order {
    long long count, first, last, kinds, error;
    char only[64]; /* a piece of the path */
    char failed[256];
};

static struct order *order;
static const char *under;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTY");
    under = getenv("FAULTY_UNDER");
    if (!name || !under) return;
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *found = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (found != MAP_FAILED) order = found;
}

static int fails(int kind, const char *call, const char *path) {
    long long n;
    if (!(order->kinds & kind) || strncmp(path, under, strlen(under))) return 0;
    if (!strstr(path, order->only)) return 0;
    n = __atomic_add_fetch(&order->count, 1, __ATOMIC_SEQ_CST);
    if (n < order->first || n > order->last) return 0;
    if (n == order->first) snprintf(order->failed, sizeof order->failed, "%s %s", call, path);
    errno = (int)order->error;
    return 1;
}

static int path_fails(int kind, const char *call, int folder, const char *path) {
    char start[PATH_MAX], whole[2 * PATH_MAX], link[64];
    ssize_t size;
    if (!order) return 0;
    if (path[0] == '/') return fails(kind, call, path);
    if (folder == AT_FDCWD) {
        if (!getcwd(start, sizeof start)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        if ((size = readlink(link, start, sizeof start - 1)) < 0) return 0;
        start[size] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", start, path);
    return fails(kind, call, whole);
}

static int fd_fails(int kind, const char *call, int fd) {
    char path[PATH_MAX], link[64];
    struct stat found;
    ssize_t size;
    if (!order || fstat(fd, &found) || !(S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((size = readlink(link, path, sizeof path - 1)) < 0) return 0;
    path[size] = 0;
    return fails(kind, call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* --- what takes room in a file ------------------------------------------------------------------ */

ssize_t write(int fd, const void *data, size_t size) {
    return fd_fails(WRITE, "write", fd) ? -1 : REAL(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return fd_fails(WRITE, "write", fd) ? -1 : REAL(pwrite)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return fd_fails(WRITE, "write", fd) ? -1 : REAL(pwrite64)(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    return fd_fails(WRITE, "write", fd) ? -1 : REAL(writev)(fd, parts, count);
}

/* --- what takes an inode, or room in a folder --------------------------------------------------- */

static int making_fails(int folder, const char *path, int flags) {
    int temporary = (flags & O_TMPFILE) == O_TMPFILE;
    if (!order || !(temporary || (flags & O_CREAT))) return 0;
    if (!temporary && !faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW)) return 0;
    return path_fails(MAKE, "make", folder, path);
}

#define MODE(flags, mode)                                        \
    mode_t mode = 0;                                             \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list rest;                                            \
        va_start(rest, flags);                                   \
        mode = va_arg(rest, mode_t);                             \
        va_end(rest);                                            \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return making_fails(AT_FDCWD, path, flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return making_fails(AT_FDCWD, path, flags) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return making_fails(folder, path, flags) ? -1 : REAL(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return making_fails(folder, path, flags) ? -1 : REAL(openat64)(folder, path, flags, mode);
}
int mkdir(const char *path, mode_t mode) {
    return path_fails(MAKE, "mkdir", AT_FDCWD, path) ? -1 : REAL(mkdir)(path, mode);
}
int link(const char *old, const char *new) {
    return path_fails(MAKE, "link", AT_FDCWD, new) ? -1 : REAL(link)(old, new);
}
int symlink(const char *target, const char *path) {
    return path_fails(MAKE, "symlink", AT_FDCWD, path) ? -1 : REAL(symlink)(target, path);
}
int rename(const char *old, const char *new) {
    return path_fails(RENAME, "rename", AT_FDCWD, new) ? -1 : REAL(rename)(old, new);
}

/* --- what is to be on disk ---------------------------------------------------------------------- */

int fsync(int fd) { return fd_fails(SYNC, "fsync", fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fd_fails(SYNC, "fsync", fd) ? -1 : REAL(fdatasync)(fd); }
int syncfs(int fd) { return fd_fails(SYNC, "syncfs", fd) ? -1 : REAL(syncfs)(fd); }
